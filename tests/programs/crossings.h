// Counts the bytes that this process's calls write to the ring of the segment shared with its worker (docs/ring.md). Natively there is no
// segment, and nothing is counted.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "vgpu/wire/segment.h"

class Crossings {
 public:
  Crossings() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; header == nullptr && std::getline(maps, line);) {
      unsigned long start, end, offset;
      char access[5];
      if (line.find("/memfd:") == std::string::npos ||
          std::sscanf(line.c_str(), "%lx-%lx %4s %lx", &start, &end, access, &offset) != 4 || offset != 0 || access[0] != 'r')
        continue;
      auto* found = reinterpret_cast<const vgpu::SegmentHeader*>(start);
      if (found->magic == vgpu::segmentMagic) header = found;
    }
    restart();
  }

  void restart() { before = head(); }
  // Bytes written to the ring since restart(), in units of the smallest frame: an upper bound of the number of frames. A frame with a few
  // numbers is one unit, a function lookup with a short name two.
  uint64_t units() const { return (head() - before) / vgpu::frameUnit; }

 private:
  uint64_t head() const { return header == nullptr ? 0 : header->rings[0].head.load(); }

  const vgpu::SegmentHeader* header = nullptr;
  uint64_t before = 0;
};
