#include "intercept/session/completion-words.h"

namespace vgpu::client {

std::optional<uint32_t> CompletionWords::take() {
  std::lock_guard lock(mutex);
  // The oldest are the likeliest to be done; those that are not go to the end. All are checked only if no unused completion word
  // is left.
  size_t looks = next == completionWordCount ? returned.size() : std::min<size_t>(returned.size(), 4);
  for (; looks > 0; --looks) {
    Returned oldest = returned.front();
    returned.pop_front();
    const uint64_t done = segment.completionWord(oldest.completion).done.load(std::memory_order_acquire);
    if (done >= oldest.lastSequence) return oldest.completion;
    returned.push_back(oldest);
  }
  if (next == completionWordCount) return std::nullopt;
  return next++;
}

void CompletionWords::give(uint32_t completion, unsigned device, uint64_t lastSequence) {
  std::lock_guard lock(mutex);
  returned.push_back({completion, device, lastSequence});
}

void CompletionWords::contextEnded(unsigned device, uint64_t sequence) {
  std::lock_guard lock(mutex);
  for (auto& one : returned)
    if (one.device == device && one.lastSequence < sequence) one.lastSequence = 0;
}

}  // namespace vgpu::client
