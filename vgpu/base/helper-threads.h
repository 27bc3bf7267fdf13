// Runs work on the calling thread and on as many helper threads as the system can provide.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace vgpu {

// Calls `work` on this thread and on `helpers` others (fewer if the system cannot start that many), and returns when all calls have
// returned. `work` must not throw; the calls take their pieces of the work from shared state.
template <typename Work>
void runWithHelpers(size_t helpers, const Work& work) {
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < helpers) threads.emplace_back(std::cref(work));
  } catch (const std::exception&) {  // the threads that did start do all of the work
  }
  work();
}

}  // namespace vgpu
