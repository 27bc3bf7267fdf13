#include "checkpoint/process/work-folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "vgpu/base/fail.h"

namespace vgpu::process {

namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = "vgpu-criu-";

kj::AutoCloseFd openFolder(const fs::path& path) {
  return kj::AutoCloseFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Removes folders of our own user that no living process has locked.
void removeLeft(const std::string& base) {
  std::error_code error, ignored;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    kj::AutoCloseFd folder = openFolder(entry->path());
    struct stat status;
    if (folder.get() < 0 || fstat(folder, &status) < 0 || status.st_uid != geteuid()) continue;
    if (flock(folder, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

std::string WorkFolder::temporary() {
  const char* base = std::getenv("TMPDIR");
  return base == nullptr || *base == '\0' ? "/tmp" : base;
}

// Between making and locking it, another process may have removed it as a leftover: the folder then has no links any more.
WorkFolder::WorkFolder(const std::string& base) {
  removeLeft(base);
  struct stat status{};
  do {
    where = fmt::format("{}/{}XXXXXX", base, prefix);
    if (mkdtemp(where.data()) == nullptr) fail(fmt::format("cannot make a folder {}: {}", where, strerror(errno)));
    lock = openFolder(where);
  } while (lock.get() < 0 ? errno == ENOENT : flock(lock, LOCK_EX) == 0 && fstat(lock, &status) == 0 && status.st_nlink == 0);
  if (lock.get() < 0) fail(fmt::format("cannot open the folder {}: {}", where, strerror(errno)));
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(where, ignored);
}

}  // namespace vgpu::process
