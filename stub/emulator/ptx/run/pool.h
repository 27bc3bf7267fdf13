// Host threads that run blocks. They are started when first needed and wait between launches, so that a small launch starts no thread. The
// pool belongs to the process: launches of several devices share its threads.
#pragma once

#include <functional>

namespace vgpu::emulator {

// Calls `work(n)` on this thread and on n - 1 others at the same time, and returns when all have returned. n is `workers`, or less if the
// system has not enough threads. `work` must not throw.
void runOnWorkers(int workers, const std::function<void(int n)>& work);

}  // namespace vgpu::emulator
