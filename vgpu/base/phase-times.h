// How much of the time of a suspend, a snapshot or a resume each phase takes.
//
// Measures the thread that does the work: work of other threads counts for the phase in which this thread waits for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace vgpu {

// Seconds per phase, ordered by when each phase first ended.
using PhaseTimes = std::vector<std::pair<std::string, double>>;

class PhaseClock {
 public:
  // Attributes the time since the last call to `phase`. A phase that ends several times gets the sum.
  void end(const char* phase) {
    auto now = Clock::now();
    double seconds = std::chrono::duration<double>(now - std::exchange(since, now)).count();
    auto known = std::ranges::find(times, phase, &std::pair<std::string, double>::first);
    if (known == times.end())
      times.emplace_back(phase, seconds);
    else
      known->second += seconds;
  }
  PhaseTimes take() { return std::exchange(times, {}); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since = Clock::now();
  PhaseTimes times;
};

}  // namespace vgpu
