#include "stub/gpu/continuations.h"

namespace vgpu::stub {

void Continuations::poll(const DeviceProgress& progress) {
  for (size_t left = waiting.size(); left > 0 && progress.hasPassed(waiting.front().fence); --left) {
    // Taken out before it runs: it may ask what else is left, and add others.
    Run run = std::move(waiting.front().run);
    waiting.pop_front();
    run(progress.fault());
  }
}

}  // namespace vgpu::stub
