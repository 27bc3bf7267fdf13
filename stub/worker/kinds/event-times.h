// The times of one GPU's events, on a clock that runs on over a suspend, so that cudaEventElapsedTime works between an event recorded
// before a suspend and one recorded after it.
//
// Used by the thread of that GPU. A snapshot keeps the times (in milliseconds since the session began) of the recorded events.
#pragma once

#include <cuda.h>

#include <map>
#include <unordered_map>

#include "stub/driver/driver.h"

namespace vgpu::stub {

class EventTimes {
 public:
  explicit EventTimes(const Driver& driver) : driver(driver) {}
  ~EventTimes();  // in the GPU's context
  EventTimes(const EventTimes&) = delete;
  EventTimes& operator=(const EventTimes&) = delete;

  // Sets the clock's zero to now, in the GPU's context. Once.
  void start();

  // `event` has been recorded in this worker: discards its saved time.
  void recorded(uint64_t event) { live[event] = true; saved.erase(event); }
  void forget(uint64_t event) { live.erase(event); saved.erase(event); }

  void forgetAll();

  // Milliseconds from `start` to `end`; else CUDA's error (not recorded, not ready, made without timing).
  CUresult elapsed(uint64_t start, CUevent realStart, uint64_t end, CUevent realEnd, float& milliseconds);

  // For a snapshot of an idle GPU: every event's time, `real` giving the driver's handles; and the clock's own time.
  std::map<uint64_t, double> times(const std::unordered_map<uint64_t, uint64_t>& real);
  double now();
  // In a restored session, whose GPU is idle and whose context is current: the clock continues from `time`, and load() says that `event`
  // happened at `time`. The worker may have started hours before the session came.
  void setClock(double time) { offset = time - (zero == nullptr ? 0 : now() - offset); }
  void load(uint64_t event, double time) { saved[event] = time; }

 private:
  // Time of one event, with the precision of a float that counts from the clock's zero. CUDA's error if it has none.
  CUresult timeOf(uint64_t event, CUevent real, double& milliseconds);

  const Driver& driver;
  CUevent zero = nullptr;
  double offset = 0;  // the clock's time at `zero`
  std::unordered_map<uint64_t, bool> live;     // recorded in this worker
  std::unordered_map<uint64_t, double> saved;  // recorded before the last restore
};

}  // namespace vgpu::stub
