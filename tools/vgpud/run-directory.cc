#include "tools/vgpud/run-directory.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

namespace fs = std::filesystem;
constexpr const char* ownerFile = "owner";

// Field 22 of /proc/PID/stat: with it, a pid means one process for ever. Empty where there is no such process.
std::string startTime(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text, field;
  std::getline(file, text);
  size_t end = text.rfind(')');  // the name before it may hold anything
  if (end == std::string::npos) return "";
  std::istringstream fields(text.substr(end + 1));
  for (int i = 3; i <= 22; ++i) fields >> field;
  return field;
}

bool ownerLives(const fs::path& session) {
  std::ifstream file(session / ownerFile);
  pid_t pid = 0;
  std::string started;
  file >> pid >> started;
  return pid > 0 && !started.empty() && startTime(pid) == started;
}

void makePrivate(const std::string& directory) {
  std::error_code error;
  fs::create_directories(fs::path(directory).parent_path(), error);
  if (mkdir(directory.c_str(), 0700) < 0 && errno != EEXIST) {
    fail("cannot make the run directory " + directory + ": " + strerror(errno));
  }
  struct stat status;
  KJ_SYSCALL(stat(directory.c_str(), &status), directory.c_str());
  if (!S_ISDIR(status.st_mode)) fail("the run directory " + directory + " is no directory");
  if (status.st_uid != geteuid()) {
    fail("the run directory " + directory + " belongs to another user; name one of your own with --run-dir");
  }
}

}  // namespace

RunDirectory::RunDirectory(const std::string& path) : directory(fs::absolute(path).lexically_normal().string()) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  makePrivate(directory);
  lock();
  removeLeftovers();
  makePrivate(directory + "/sessions");
}

RunDirectory::~RunDirectory() {
  unlink(controlSocket().c_str());
  unlink(sessionSocket().c_str());
}

// The lock file stays: removing it would let a third daemon lock a new file of the same name beside a second one.
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

void RunDirectory::removeLeftovers() {
  unlink(controlSocket().c_str());
  unlink(sessionSocket().c_str());
  std::error_code error;
  std::vector<fs::path> dead;
  for (const auto& entry : fs::directory_iterator(directory + "/sessions", error)) {
    if (!ownerLives(entry.path())) dead.push_back(entry.path());
  }
  for (const fs::path& path : dead) removeSessionState(path, path.filename());
}

std::string RunDirectory::makeSession(const std::string& id, pid_t owner) {
  std::string path = directory + "/sessions/" + id;
  if (mkdir(path.c_str(), 0700) < 0) fail("cannot make the session's state directory " + path + ": " + strerror(errno));
  std::ofstream file(path + "/" + ownerFile);
  file << owner << ' ' << startTime(owner) << '\n';
  if (!file.flush()) fail("cannot write into the session's state directory " + path + " (is the disk full?)");
  return path;
}

void removeSessionState(const std::string& path, const std::string& id) {
  fs::path folder(path);
  bool named = !id.empty() && folder.filename() == id && folder.parent_path().filename() == "sessions";
  std::error_code error;
  if (!named || !fs::is_regular_file(folder / ownerFile, error)) return;
  fs::remove_all(folder, error);
  if (error) spdlog::warn("cannot remove {}: {}", path, error.message());
}

}  // namespace vgpu
