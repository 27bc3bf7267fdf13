#include "intercept/session/elapsed-times.h"

namespace vgpu::client {

std::optional<float> ElapsedTimes::find(const Record& start, const Record& end) const {
  std::lock_guard lock(mutex);
  auto found = ends.find(end.event);
  if (found == ends.end() || found->second.sequence != end.sequence) return std::nullopt;
  for (auto& known : found->second.known)
    if (known.start == start) return known.milliseconds;
  return std::nullopt;
}

void ElapsedTimes::add(const Record& start, const Record& end, float milliseconds) {
  std::lock_guard lock(mutex);
  End& entry = ends[end.event];
  if (entry.sequence != end.sequence) entry = {end.sequence, {}};  // recorded again
  if (entry.known.size() == mostStarts) entry.known.pop_front();
  entry.known.push_back({start, milliseconds});
  isUsed.store(true, std::memory_order_relaxed);
}

// Relaxed: the program destroys an event after its queries of times, and synchronizes its threads for that itself.
void ElapsedTimes::forget(uint64_t end) {
  if (!isUsed.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex);
  ends.erase(end);
}

}  // namespace vgpu::client
