#include "intercept/session/stream-completion.h"

namespace vgpu::client {

std::optional<uint32_t> StreamCompletion::takeFirst(CompletionWords& completions, unsigned device) {
  uint32_t own = none;
  auto fresh = completions.take(device);
  if (!fresh) return find();
  if (completion.compare_exchange_strong(own, *fresh)) return fresh;
  completions.give(*fresh, device);  // another thread has set it first
  return own;
}

std::optional<uint32_t> StreamCompletion::find() const {
  uint32_t own = completion.load(std::memory_order_relaxed);
  return own == none ? std::nullopt : std::optional(own);
}

void StreamCompletion::end(CompletionWords& completions, unsigned device) {
  uint32_t own = completion.exchange(none);
  if (own != none) completions.give(own, device, last.get());
}

void StreamCompletion::reset() {
  completion.store(none, std::memory_order_relaxed);
  last.reset();
}

}  // namespace vgpu::client
