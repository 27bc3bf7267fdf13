// The links between devices and the host, and between devices: they determine how long a copy's transfer takes.
//
// Every device has one link to the host and one to its peers, each with two independent directions. A direction carries one copy after
// another, so copies that share it share its speed. A device's own memory, and accesses by kernels, are not slowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace vgpu::emulator::api {

class MemorySpan;
struct Settings;

// One direction of a link. Used by any thread; its lock is a leaf.
class LinkDirection {
 public:
  using Clock = std::chrono::steady_clock;
  explicit LinkDirection(uint64_t bytesPerSecond) : bytesPerSecond(bytesPerSecond) {}
  bool limited() const { return bytesPerSecond != 0; }
  // Sends `bytes` after everything sent before, from `now` on at the earliest. Returns the time at which the last byte arrives; `now` if
  // the speed is not limited.
  Clock::time_point send(uint64_t bytes, Clock::time_point now);

 private:
  const uint64_t bytesPerSecond;  // 0: not limited
  std::mutex mutex;
  Clock::time_point free{};
};

// A device's ends of its links.
struct LinkEnds {
  explicit LinkEnds(const Settings&);
  LinkDirection fromHost, toHost, fromPeers, toPeers;
};

// The directions that a copy uses, all at the same time. None inside one device or inside the host.
class Route {
 public:
  Route(const MemorySpan& to, const MemorySpan& from);
  // Whether a copy is slower than a plain memory copy.
  bool limited() const;
  // Sends the bytes and waits until they have arrived.
  void carry(uint64_t bytes) const;

 private:
  LinkDirection *out = nullptr, *in = nullptr;
};

}  // namespace vgpu::emulator::api
