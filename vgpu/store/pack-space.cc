#include "vgpu/store/pack-space.h"

#include <fcntl.h>
#include <kj/io.h>
#include <sys/stat.h>

#include <algorithm>

namespace vgpu {

namespace {

constexpr uint64_t pageBytes = 4096, blockBytes = 512;  // the second is the unit of stat's st_blocks, whatever the file system's block size

}  // namespace

uint64_t allocatedBytes(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_blocks) * blockBytes : 0;
}

void keepOnly(const std::string& path, std::vector<Extent> kept) {
  struct stat status;
  kj::AutoCloseFd file(open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0 || fstat(file, &status) != 0) return;
  std::ranges::sort(kept);
  kept.push_back({static_cast<uint64_t>(status.st_size), 0});
  uint64_t begin = 0;
  for (auto& extent : kept) {
    uint64_t first = (begin + pageBytes - 1) / pageBytes * pageBytes, end = extent.offset / pageBytes * pageBytes;
    if (first < end)
      fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first), static_cast<off_t>(end - first));
    begin = std::max(begin, extent.offset + extent.bytes);
  }
}

}  // namespace vgpu
