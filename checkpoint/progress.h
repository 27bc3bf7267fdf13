// Reports the progress of a phase, at most every 100 ms and once at its end.
#pragma once

#include <chrono>

#include "checkpoint/snapshot.h"

namespace vgpu::checkpoint {

class Phase {
 public:
  Phase(const Progress& progress, const char* name, uint64_t total) : progress(progress), name(name), total(total) {}

  void advance(uint64_t amount) {
    done += amount;
    auto now = std::chrono::steady_clock::now();
    if (!progress || (done < total && now - reported < std::chrono::milliseconds(100))) return;
    reported = now;
    progress(name, done, total);
  }

 private:
  const Progress& progress;
  const char* name;
  uint64_t done = 0, total;
  std::chrono::steady_clock::time_point reported;
};

}  // namespace vgpu::checkpoint
