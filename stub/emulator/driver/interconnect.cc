#include "stub/emulator/driver/interconnect.h"

#include <algorithm>
#include <thread>

#include "stub/emulator/driver/device.h"
#include "stub/emulator/memory/span.h"

namespace vgpu::emulator::api {

LinkDirection::Clock::time_point LinkDirection::send(uint64_t bytes, Clock::time_point now) {
  if (!limited()) return now;
  using Seconds = std::chrono::duration<double>;
  auto duration = Seconds(static_cast<double>(bytes) / static_cast<double>(bytesPerSecond));
  std::lock_guard lock(mutex);
  free = std::max(free, now) + std::chrono::ceil<Clock::duration>(duration);
  return free;
}

LinkEnds::LinkEnds(const Settings& settings)
    : fromHost(settings.hostLink),
      toHost(settings.hostLink),
      fromPeers(settings.peerLink),
      toPeers(settings.peerLink) {}

Route::Route(const MemorySpan& to, const MemorySpan& from) {
  Device *target = to.device(), *source = from.device();
  if (target == source) return;
  if (source) out = target ? &source->links.toPeers : &source->links.toHost;
  if (target) in = source ? &target->links.fromPeers : &target->links.fromHost;
}

bool Route::limited() const { return (out && out->limited()) || (in && in->limited()); }

void Route::carry(uint64_t bytes) const {
  auto now = LinkDirection::Clock::now(), arrival = now;
  for (LinkDirection* direction : {out, in})
    if (direction) arrival = std::max(arrival, direction->send(bytes, now));
  if (arrival > now) std::this_thread::sleep_until(arrival);
}

}  // namespace vgpu::emulator::api
