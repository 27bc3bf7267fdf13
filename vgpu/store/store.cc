#include "vgpu/store/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string_view>
#include <vector>

#include "vgpu/base/private-folder.h"

namespace vgpu {

namespace {

constexpr std::string_view unfinishedPrefix = "new-";
constexpr time_t unfinishedSeconds = 3600;  // writing one file never takes longer: the writer was killed

struct Entry {
  std::string name;
  uint64_t bytes = 0;
  timespec used{};
};

bool isStoredName(std::string_view name) {
  return name.size() == 2 * sizeof(ImageDigest) && name.find_first_not_of("0123456789abcdef") == name.npos;
}

bool isUsedBefore(const Entry& a, const Entry& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

std::string unfinishedName() {
  uint64_t random = 0;
  while (getrandom(&random, sizeof random, 0) < 0 && errno == EINTR) {
  }
  return fmt::format("{}{:016x}", unfinishedPrefix, random);
}

// The files of a store. Removes unfinished files of killed writers on the way; leaves foreign files alone.
std::vector<Entry> listFiles(int folder) {
  std::vector<Entry> found;
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = again < 0 ? nullptr : fdopendir(again);
  if (listing == nullptr) {
    if (again >= 0) close(again);
    return found;
  }
  while (dirent* entry = readdir(listing)) {
    std::string_view name = entry->d_name;
    struct stat status;
    if (!isStoredName(name) && !name.starts_with(unfinishedPrefix)) continue;
    if (fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0) continue;
    if (isStoredName(name)) {
      found.push_back({entry->d_name, static_cast<uint64_t>(status.st_size), status.st_mtim});
    } else if (status.st_mtim.tv_sec < time(nullptr) - unfinishedSeconds) {
      unlinkat(folder, entry->d_name, 0);
    }
  }
  closedir(listing);
  return found;
}

// Writes all of `parts`, in order. Returns 0 or an errno.
int writeAll(int fd, std::vector<iovec> parts) {
  size_t next = 0;
  while (next < parts.size()) {
    ssize_t count = writev(fd, &parts[next], static_cast<int>(parts.size() - next));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    auto done = static_cast<size_t>(count);
    while (next < parts.size() && done >= parts[next].iov_len) done -= parts[next++].iov_len;
    if (next == parts.size()) break;
    parts[next].iov_base = static_cast<std::byte*>(parts[next].iov_base) + done;
    parts[next].iov_len -= done;
  }
  return 0;
}

iovec partOf(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

std::optional<Store> Store::open(const std::string& directory, uint64_t limitBytes, std::string& problem) {
  KJ_IF_MAYBE (folder, openPrivateFolder(directory, problem)) {
    return Store(kj::mv(*folder), directory, limitBytes);
  }
  return std::nullopt;
}

kj::Maybe<kj::AutoCloseFd> Store::find(const ImageDigest& digest, std::string& damage) const {
  // O_NONBLOCK: the name may be a pipe.
  kj::AutoCloseFd file(openat(folder, hexOf(digest).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 && errno != ELOOP) return nullptr;
  struct stat status;
  if (file.get() < 0 || fstat(file, &status) < 0) {
    damage = "it is a symbolic link";
  } else if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0) {
    damage = "it is not a regular file of this user that only this user can write";
  } else {
    return kj::mv(file);
  }
  return nullptr;
}

void Store::touch(const ImageDigest& digest) const {
  utimensat(folder, hexOf(digest).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void Store::remove(const ImageDigest& digest) const { unlinkat(folder, hexOf(digest).c_str(), 0); }

int Store::add(const ImageDigest& digest, std::initializer_list<Part> parts) {
  std::string name = hexOf(digest);
  if (faccessat(folder, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return 0;  // another process has added the file first
  uint64_t bytes = 0;
  for (auto& part : parts) bytes += part.size();
  if (bytes > limitBytes) return 0;
  makeRoom(bytes);
  if (int error = write(name, parts)) return error;
  *heldBytes += bytes;
  return 0;
}

int Store::write(const std::string& name, std::initializer_list<Part> parts) {
  std::string unfinished = unfinishedName();
  kj::AutoCloseFd file(openat(folder, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return errno;
  std::vector<iovec> pieces;
  for (auto& part : parts) pieces.push_back(partOf(part));
  // Not synced: the user's checks detect a file that a crash has torn.
  int error = writeAll(file, std::move(pieces));
  if (error == 0 && renameat(folder, unfinished.c_str(), folder, name.c_str()) < 0) error = errno;
  if (error != 0) unlinkat(folder, unfinished.c_str(), 0);
  return error;
}

// Frees a tenth of the limit at a time, so that a full store is not listed for every new file.
void Store::makeRoom(uint64_t bytes) {
  if (heldBytes && *heldBytes + bytes <= limitBytes) return;
  auto files = listFiles(folder);
  uint64_t held = 0;
  for (auto& file : files) held += file.bytes;
  if (held + bytes > limitBytes) {
    std::sort(files.begin(), files.end(), isUsedBefore);
    uint64_t wanted = std::min(limitBytes - bytes, limitBytes / 10 * 9);
    for (auto& file : files) {
      if (held <= wanted) break;
      if (unlinkat(folder, file.name.c_str(), 0) < 0 && errno != ENOENT) continue;
      held -= file.bytes;
    }
  }
  heldBytes = held;
}

}  // namespace vgpu
