// Allocates the segment's completion words, for streams (stream-completion.h) and host functions. A word is reused without clearing: later
// records have larger numbers. It is reused on its own device only, because each device's ring counts separately. When a stream is
// destroyed, the GPU may not have reached an earlier record yet and would later overwrite a newer number: such a word is reused only after
// the GPU has written it.
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

  // A word for a stream or function of `device`. Nothing if all 32,768 are taken, or have been used on other devices.
  std::optional<uint32_t> take(unsigned device);
  // Gives back a word that was taken for `device`. `lastSequence`: the last frame that makes the GPU write the word; 0 if the GPU has
  // executed all of them.
  void give(uint32_t completion, unsigned device, uint64_t lastSequence = 0);
  // The context of `device` has ended: the GPU writes no more words for frames before `sequence`.
  void contextEnded(unsigned device, uint64_t sequence);

 private:
  struct Returned {
    uint32_t completion;
    uint64_t lastSequence;
  };
  const Segment& segment;
  std::mutex mutex;  // leaf lock
  std::array<std::deque<Returned>, maxDevices> returned;  // by device
  uint32_t next = 0;
};

}  // namespace vgpu::client
