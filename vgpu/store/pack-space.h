// What of a pack takes space on its file system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu {

struct Extent {
  uint64_t offset, bytes;
  auto operator<=>(const Extent&) const = default;
};

// 0 if there is no such file.
uint64_t allocatedBytes(const std::string& path);

// Gives all but these pieces of a file back to its file system, page by page; what is kept stays where it is. A file system that cannot do
// this keeps all.
void keepOnly(const std::string& path, std::vector<Extent> kept);

}  // namespace vgpu
