// Which completion words of the segment are taken, by streams (stream-completion.h) and host functions. A completion word is
// reused with its old number in it: later records have larger ones, so it needs no clearing. It is reused on its own device only,
// because each device's ring counts for itself. When a stream is destroyed the GPU may not have reached an earlier record yet, and
// would later overwrite a newer number: such a completion word is not reused before the GPU has written it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "vgpu/wire/segment.h"

namespace vgpu::client {

class CompletionWords {
 public:
  explicit CompletionWords(const Segment& segment) : segment(segment) {}

  // For a stream or function of `device`. Nothing if all 32,768 are taken, or have been used on other devices.
  std::optional<uint32_t> take(unsigned device);
  // Gives back one that was taken for `device`. `lastSequence`: of the last frame that lets the GPU write into the completion
  // word; 0 if all of them have.
  void give(uint32_t completion, unsigned device, uint64_t lastSequence = 0);
  // The context of `device` has ended: the GPU writes nothing more of frames before `sequence`.
  void contextEnded(unsigned device, uint64_t sequence);

 private:
  struct Returned {
    uint32_t completion;
    uint64_t lastSequence;
  };
  const Segment& segment;
  std::mutex mutex;  // a leaf
  std::array<std::deque<Returned>, maxDevices> returned;  // by device
  uint32_t next = 0;
};

}  // namespace vgpu::client
