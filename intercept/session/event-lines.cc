#include "intercept/session/event-lines.h"

namespace vgpu::client {

std::optional<uint32_t> EventLines::take() {
  std::lock_guard lock(mutex);
  // The oldest are the likeliest to be done; those that are not go to the end. All are looked at only where there is no
  // fresh line.
  size_t looks = next == eventLineCount ? returned.size() : std::min<size_t>(returned.size(), 4);
  for (; looks > 0; --looks) {
    Returned oldest = returned.front();
    returned.pop_front();
    if (segment.eventLine(oldest.line).done.load(std::memory_order_acquire) >= oldest.lastStamp) return oldest.line;
    returned.push_back(oldest);
  }
  if (next == eventLineCount) return std::nullopt;
  return next++;
}

void EventLines::give(uint32_t line, unsigned device, uint64_t lastStamp) {
  std::lock_guard lock(mutex);
  returned.push_back({line, device, lastStamp});
}

void EventLines::contextEnded(unsigned device, uint64_t stamp) {
  std::lock_guard lock(mutex);
  for (auto& one : returned)
    if (one.device == device && one.lastStamp < stamp) one.lastStamp = 0;
}

}  // namespace vgpu::client
