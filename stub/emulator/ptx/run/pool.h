// Host threads that run blocks. They are started when first asked for and wait between launches, so that a small launch
// costs no thread start. The pool is the process's: launches of several devices share its threads.
#pragma once

#include <functional>

namespace vgpu::emulator {

// Calls `work(n)` on this thread and on n - 1 others at the same time, and returns when all have returned. n is `workers`, or
// less where the system has no threads for so many. `work` must not throw.
void runOnWorkers(int workers, const std::function<void(int n)>& work);

}  // namespace vgpu::emulator
