// Which parts of a pack take space on its file system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu {

struct Extent {
  uint64_t offset, bytes;
  auto operator<=>(const Extent&) const = default;
};

// 0 if the file does not exist.
uint64_t allocatedBytes(const std::string& path);

// Gives all of a file except these pieces back to the file system, page by page; kept bytes stay at their offsets. Has no effect on a file
// system that cannot punch holes.
void keepOnly(const std::string& path, std::vector<Extent> kept);

}  // namespace vgpu
