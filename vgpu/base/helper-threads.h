// Work of the calling thread in which others help, as many as the system has.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace vgpu {

// Calls `work` on this thread and on `helpers` others, fewer where the system has no threads for so many, and returns when all have
// returned. `work` must not throw, and takes its pieces from what all share.
template <typename Work>
void runWithHelpers(size_t helpers, const Work& work) {
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < helpers) threads.emplace_back(std::cref(work));
  } catch (const std::exception&) {  // the others do it
  }
  work();
}

}  // namespace vgpu
