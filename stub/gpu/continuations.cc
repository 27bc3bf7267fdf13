#include "stub/gpu/continuations.h"

namespace vgpu::stub {

void Continuations::poll(const DeviceProgress& progress) {
  for (size_t left = waiting.size(); left > 0 && progress.hasPassed(waiting.front().fence); --left) {
    // Removed before it runs, because it may look for other continuations and add some.
    Run run = std::move(waiting.front().run);
    waiting.pop_front();
    run(progress.fault());
  }
}

}  // namespace vgpu::stub
