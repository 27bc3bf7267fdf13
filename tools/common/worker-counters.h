// A worker's counters, in memory that it shares with its daemon.
#pragma once

#include "vgpu/store/image-counters.h"
#include "vgpu/wire/launch-counters.h"

namespace vgpu {

struct WorkerCounters {
  ImageCounters images;
  LaunchCounters launches;
};

}  // namespace vgpu
