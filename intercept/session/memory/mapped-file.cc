#include "intercept/session/memory/mapped-file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "intercept/session/memory/mapped-ranges.h"

namespace vgpu::client {
namespace {

bool isFileOf(const MappedRange& range, const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_dev == range.device && status.st_ino == range.inode;
}

// Opens `path` if it still names the mapped file. Checked with stat() first: opening a device can have side effects.
kj::AutoCloseFd openIf(const MappedRange& range, const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !isFileOf(range, status)) return {};  // another file has that path now
  kj::AutoCloseFd file(open(path.c_str(), (range.isWritable() ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 || fstat(file, &status) != 0 || !isFileOf(range, status)) return {};
  return file;
}

kj::AutoCloseFd openDescriptor(const MappedRange& range) {
  std::error_code failed;
  for (auto& each : std::filesystem::directory_iterator("/proc/self/fd", failed)) {
    struct stat status {};
    if (stat(each.path().c_str(), &status) == 0 && isFileOf(range, status)) return openIf(range, each.path());
  }
  return {};
}

kj::AutoCloseFd openFile(const MappedRange& range) {
  kj::AutoCloseFd file = openIf(range, fmt::format("/proc/self/map_files/{:x}-{:x}", range.start, range.end));
  if (file.get() < 0 && range.name.starts_with('/')) file = openIf(range, range.name);
  if (file.get() < 0) file = openDescriptor(range);
  return file;
}

}  // namespace

std::optional<MappedFile> findMappedFile(uint64_t address, uint64_t bytes) {
  std::optional<MappedRange> first;
  uint64_t covered = address;
  forEachMapping(address, bytes, [&](const MappedRange& range) {
    if (range.start > covered || !range.isShared() || !range.isReadable() || range.inode == 0) return;
    if (!first) first = range;
    const bool goesOn = range.device == first->device && range.inode == first->inode && range.isWritable() == first->isWritable() &&
                        range.offset - first->offset == range.start - first->start;
    if (goesOn) covered = range.end;
  });
  if (!first || covered < address + bytes) return std::nullopt;
  kj::AutoCloseFd file = openFile(*first);
  if (file.get() < 0) return std::nullopt;
  return MappedFile{kj::mv(file), first->offset + (address - first->start), first->isWritable()};
}

}  // namespace vgpu::client
