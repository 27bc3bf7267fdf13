#include "intercept/session/stream-line.h"

namespace vgpu::client {

std::optional<uint32_t> StreamLine::take(EventLines& lines) {
  uint32_t own = line.load(std::memory_order_relaxed);
  if (own != none) [[likely]] return own;
  auto fresh = lines.take();
  if (!fresh) return find();
  if (line.compare_exchange_strong(own, *fresh)) return fresh;
  lines.give(*fresh);  // another thread was faster
  return own;
}

void StreamLine::expect(uint64_t stamp) {
  uint64_t seen = last.load(std::memory_order_relaxed);
  while (seen < stamp && !last.compare_exchange_weak(seen, stamp, std::memory_order_relaxed)) {
  }
}

std::optional<uint32_t> StreamLine::find() const {
  uint32_t own = line.load(std::memory_order_relaxed);
  return own == none ? std::nullopt : std::optional(own);
}

void StreamLine::end(EventLines& lines, unsigned device) {
  uint32_t own = line.exchange(none);
  if (own != none) lines.give(own, device, last.load());
}

void StreamLine::reset() {
  line.store(none, std::memory_order_relaxed);
  last.store(0, std::memory_order_relaxed);
}

}  // namespace vgpu::client
