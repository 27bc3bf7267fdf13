#include "vgpu/store/disk-space.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cstring>
#include <filesystem>

#include "vgpu/base/sizes.h"

namespace vgpu {

namespace {

std::string sizeText(uint64_t bytes) {
  constexpr uint64_t kib = 1024;
  return bytes < MiB ? fmt::format("{:.1f} KiB", static_cast<double>(bytes) / kib)
                     : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / MiB);
}

}  // namespace

uint64_t freeBytesAt(const std::string& path) {
  struct statvfs found;
  if (statvfs(path.c_str(), &found) != 0 && statvfs(std::filesystem::path(path).parent_path().c_str(), &found) != 0) return 0;
  return uint64_t{found.f_bavail} * found.f_frsize;
}

std::string writeProblem(int error, const std::string& path, uint64_t wantedBytes) {
  if (error != ENOSPC && error != EDQUOT) return strerror(error);
  std::string wanted = wantedBytes == 0 ? "" : fmt::format("at least {} more are needed, and ", sizeText(wantedBytes));
  return fmt::format("{}: {}{} are free there. Free disk space (in a store with `vgpuctl snapshots rm` and `gc`), or name another place",
                     strerror(error), wanted, sizeText(freeBytesAt(path)));
}

}  // namespace vgpu
