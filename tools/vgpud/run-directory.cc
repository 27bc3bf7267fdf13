#include "tools/vgpud/run-directory.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "vgpu/base/fail.h"
#include "vgpu/base/private-folder.h"

namespace vgpu::daemon {
namespace {

void makePrivate(const std::string& path) {
  std::string problem;
  if (openPrivateFolder(path, problem) == nullptr) fail("the run directory cannot be used: " + problem);
}

}  // namespace

RunDirectory::RunDirectory(const std::string& path)
    : directory(std::filesystem::absolute(path).lexically_normal().string()) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  makePrivate(directory);
  lock();
  unlink(controlSocket().c_str());
  unlink(sessionSocket().c_str());
  unlink(streamSocket().c_str());
  makePrivate(sessions());
  makePrivate(directory + "/arrived");
  makePrivate(arrived());
  makePrivate(renewals());
}

RunDirectory::~RunDirectory() {
  unlink(controlSocket().c_str());
  unlink(sessionSocket().c_str());
  unlink(streamSocket().c_str());
}

// The lock file is never removed: otherwise a third daemon could lock a new file of the same name beside a second daemon.
void RunDirectory::lock() {
  std::string path = directory + "/lock";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) fail("cannot use the run directory " + directory + ": " + path + ": " + strerror(errno));
  lockFile = kj::AutoCloseFd(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
    char pid[32] = {};
    ssize_t length = pread(fd, pid, sizeof(pid) - 1, 0);
    std::string who = length > 0 ? " (pid " + std::string(pid, strcspn(pid, "\n")) + ")" : "";
    fail("another vgpud" + who + " runs on " + directory + "; stop it, or name another --run-dir");
  }
  std::string pid = std::to_string(getpid()) + "\n";
  KJ_SYSCALL(ftruncate(fd, 0));
  ssize_t written;
  KJ_SYSCALL(written = pwrite(fd, pid.data(), pid.size(), 0), path.c_str());
}

}  // namespace vgpu::daemon
