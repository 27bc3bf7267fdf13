#include "intercept/session/stream-completion.h"

namespace vgpu::client {

std::optional<uint32_t> StreamCompletion::take(CompletionWords& completions, unsigned device) {
  uint32_t own = completion.load(std::memory_order_relaxed);
  if (own != none) [[likely]] return own;
  auto fresh = completions.take(device);
  if (!fresh) return find();
  if (completion.compare_exchange_strong(own, *fresh)) return fresh;
  completions.give(*fresh, device);  // another thread was faster
  return own;
}

void StreamCompletion::expect(uint64_t sequence) {
  uint64_t seen = last.load(std::memory_order_relaxed);
  while (seen < sequence && !last.compare_exchange_weak(seen, sequence, std::memory_order_relaxed)) {
  }
}

std::optional<uint32_t> StreamCompletion::find() const {
  uint32_t own = completion.load(std::memory_order_relaxed);
  return own == none ? std::nullopt : std::optional(own);
}

void StreamCompletion::end(CompletionWords& completions, unsigned device) {
  uint32_t own = completion.exchange(none);
  if (own != none) completions.give(own, device, last.load());
}

void StreamCompletion::reset() {
  completion.store(none, std::memory_order_relaxed);
  last.store(0, std::memory_order_relaxed);
}

}  // namespace vgpu::client
