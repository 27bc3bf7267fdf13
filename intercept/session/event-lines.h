// Which lines of the segment are taken, by streams (stream-line.h) and host functions. A line is reused with its old number in
// it: later records have larger ones, so it needs no clearing. But the GPU may still be on its way to an earlier record when the
// stream is destroyed, and would write over a later one: such a line waits until that has happened.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "vgpu/wire/segment.h"

namespace vgpu::client {

class EventLines {
 public:
  explicit EventLines(const Segment& segment) : segment(segment) {}

  // Nothing where all 32,768 are taken.
  std::optional<uint32_t> take();
  // `lastStamp`: of the last frame that lets the GPU of `device` write into the line; 0 where all of them have.
  void give(uint32_t line, unsigned device = 0, uint64_t lastStamp = 0);
  // The context of `device` has ended: the GPU writes nothing more of frames before `stamp`.
  void contextEnded(unsigned device, uint64_t stamp);

 private:
  struct Returned {
    uint32_t line;
    unsigned device;
    uint64_t lastStamp;
  };
  const Segment& segment;
  std::mutex mutex;  // a leaf
  std::deque<Returned> returned;
  uint32_t next = 0;
};

}  // namespace vgpu::client
