// When events of one GPU happened, on a clock that goes on over a suspend, so that cudaEventElapsedTime between an event recorded
// before it and one after still answers.
//
// Used by the thread of that GPU. A snapshot keeps the times (milliseconds since the session began) of the recorded events.
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

  // Marks now as the clock's zero, in the GPU's context. Once.
  void start();

  // `event` has been recorded in this worker: its saved time is void.
  void recorded(uint64_t event) { live[event] = true; saved.erase(event); }
  void forget(uint64_t event) { live.erase(event); saved.erase(event); }

  void forgetAll();

  // Milliseconds from `start` to `end`. CUDA's answer otherwise (not recorded, not ready, made without timing).
  CUresult elapsed(uint64_t start, CUevent realStart, uint64_t end, CUevent realEnd, float& milliseconds);

  // For a snapshot of an idle GPU: every event's time, `real` giving each its handle; and the clock's own time.
  std::map<uint64_t, double> times(const std::unordered_map<uint64_t, uint64_t>& real);
  double now();
  // In a restored session, whose GPU is idle and in whose context the thread is: the clock goes on from `time` now, and `event` happened
  // at `time`. The worker may have waited for the session for hours.
  void setClock(double time) { offset = time - (zero == nullptr ? 0 : now() - offset); }
  void load(uint64_t event, double time) { saved[event] = time; }

 private:
  // Time of one event, as exact as a float is that counts from the clock's zero. CUDA's answer where it has none.
  CUresult timeOf(uint64_t event, CUevent real, double& milliseconds);

  const Driver& driver;
  CUevent zero = nullptr;
  double offset = 0;  // the clock's time at zero
  std::unordered_map<uint64_t, bool> live;     // recorded in this worker
  std::unordered_map<uint64_t, double> saved;  // recorded before the last restore
};

}  // namespace vgpu::stub
