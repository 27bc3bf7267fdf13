// Which lines of the segment belong to which event. A line is reused with its old number in it: later records have larger
// ones, so it needs no clearing.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "vgpu/wire/segment.h"

namespace vgpu {

class EventLines {
 public:
  // Nothing where all 32,768 are taken.
  std::optional<uint32_t> take() {
    std::lock_guard lock(mutex);
    if (!returned.empty()) {
      uint32_t line = returned.back();
      returned.pop_back();
      return line;
    }
    if (next == eventLineCount) return std::nullopt;
    return next++;
  }
  void give(uint32_t line) {
    std::lock_guard lock(mutex);
    returned.push_back(line);
  }

 private:
  std::mutex mutex;  // a leaf
  std::vector<uint32_t> returned;
  uint32_t next = 0;
};

}  // namespace vgpu
