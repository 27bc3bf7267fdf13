// Host threads that run blocks. They are started when first asked for and wait between launches, so that a small launch
// costs no thread start. The pool is the process's: launches of several devices share its threads.
#pragma once

#include <functional>

namespace vgpu::emulator {

// Calls `work(0)` on this thread and `work(1)` … `work(workers - 1)` on others, and returns when all have returned.
// `work` must not throw.
void runOnWorkers(int workers, const std::function<void(int)>& work);

}  // namespace vgpu::emulator
