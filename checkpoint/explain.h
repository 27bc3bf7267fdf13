// What would refuse or delay a suspend of a running session, object by object, determined without a suspend.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stub/worker/worker.h"

namespace vgpu::checkpoint {

struct Obstacle {
  bool refuses = false;  // else it delays it
  std::string object, why;
};

struct Explanation {
  std::vector<Obstacle> obstacles;
  uint64_t deviceBytes = 0;  // that a suspend would save; if it would be refused, of those kinds that can be saved
};

// Stops the session between two frames, for as long as a save takes to list its objects. Call it on the thread that controls the worker.
Explanation explain(stub::Worker& worker);

}  // namespace vgpu::checkpoint
