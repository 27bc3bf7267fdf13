#include "intercept/session/completion-words.h"

namespace vgpu::client {

std::optional<uint32_t> CompletionWords::take(unsigned device) {
  std::lock_guard lock(mutex);
  auto& own = returned[device];
  // The oldest are the likeliest to be written; words that are not yet go to the end of the queue. All of them are checked only if no
  // unused word is left.
  size_t looks = next == completionWordCount ? own.size() : std::min<size_t>(own.size(), 4);
  for (; looks > 0; --looks) {
    Returned oldest = own.front();
    own.pop_front();
    const uint64_t done = segment.completionWord(oldest.completion).done.load(std::memory_order_acquire);
    if (done >= oldest.lastSequence) return oldest.completion;
    own.push_back(oldest);
  }
  if (next == completionWordCount) return std::nullopt;
  return next++;
}

void CompletionWords::give(uint32_t completion, unsigned device, uint64_t lastSequence) {
  std::lock_guard lock(mutex);
  returned[device].push_back({completion, lastSequence});
}

void CompletionWords::contextEnded(unsigned device, uint64_t sequence) {
  std::lock_guard lock(mutex);
  for (auto& one : returned[device])
    if (one.lastSequence < sequence) one.lastSequence = 0;
}

}  // namespace vgpu::client
