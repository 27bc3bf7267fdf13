// What would refuse or delay a suspend of a running session, object by object, without one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stub/worker/worker.h"

namespace vgpu::checkpoint {

struct Obstacle {
  bool refuses = false;  // else it delays
  std::string object, why;
};

struct Explanation {
  std::vector<Obstacle> obstacles;
  uint64_t deviceBytes = 0;  // that a suspend would save; of a session that it would refuse, of the kinds that can be saved
};

// Stops the session between two frames, for as long as a save takes to list its objects. On the thread that controls the worker.
Explanation explain(stub::Worker& worker);

}  // namespace vgpu::checkpoint
