#include "tools/common/new-file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "vgpu/base/fail.h"

namespace vgpu {

namespace {

std::string folderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

NewFile::NewFile(const std::string& wanted) : path(wanted), folder(folderOf(wanted)) {
  if (faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) refuse(EEXIST);
  int fd = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {  // for example on a network file system
    unfinished = fmt::format("{}.{}.unfinished", path, getpid());
    fd = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  }
  if (fd < 0) {
    unfinished.clear();
    refuse(errno);
  }
  file = kj::AutoCloseFd(fd);
}

NewFile::~NewFile() noexcept {
  if (!unfinished.empty()) unlink(unfinished.c_str());
}

void NewFile::refuse(int error) const { fail(fmt::format("cannot write {}: {}", path, strerror(error))); }

void NewFile::publish() {
  if (fsync(file) != 0) refuse(errno);
  std::string own = unfinished.empty() ? fmt::format("/proc/self/fd/{}", file.get()) : unfinished;
  if (linkat(AT_FDCWD, own.c_str(), AT_FDCWD, path.c_str(), unfinished.empty() ? AT_SYMLINK_FOLLOW : 0) != 0) refuse(errno);
  kj::AutoCloseFd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || fsync(directory) != 0) refuse(errno);
}

}  // namespace vgpu
