#include "intercept/session/memory/mapped-ranges.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace vgpu::client {

void forEachMapping(uint64_t address, uint64_t bytes, const std::function<void(const MappedRange&)>& visit) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    MappedRange range;
    unsigned major = 0, minor = 0;
    int nameAt = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu %n", &range.start, &range.end, range.mode, &range.offset, &major, &minor,
                    &range.inode, &nameAt) != 7)
      continue;
    if (range.start >= address + bytes) return;
    if (range.end <= address) continue;
    range.device = makedev(major, minor);
    range.name = line.substr(std::min(static_cast<size_t>(nameAt), line.size()));
    visit(range);
  }
}

}  // namespace vgpu::client
