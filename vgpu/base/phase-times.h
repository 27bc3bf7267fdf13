// What the time of a suspend, a snapshot or a resume goes to, phase by phase.
//
// Of the one thread that does the work: what others do meanwhile belongs to the phase that waits for them.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace vgpu {

// Seconds, in the order in which the phases first ended.
using PhaseTimes = std::vector<std::pair<std::string, double>>;

class PhaseClock {
 public:
  // All since the last end was `phase`. One that ends several times counts once, with all of it.
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
