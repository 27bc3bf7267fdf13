// What a GPU's thread does when the GPU has come far enough: so no handler waits for the GPU, and another thread's call,
// which may be what that wait needs, is executed meanwhile.
//
// The thread's of that GPU, between two frames. A continuation waits for a fence (device-progress.h) and then runs once. They run
// in the order in which they were added. At a barrier all have run: Worker::quiesce() sees to it, and of this a suspend keeps
// nothing.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "stub/gpu/device-progress.h"

namespace vgpu::stub {

class Continuations {
 public:
  // Is told what has ended the GPU's context meanwhile; CUDA_SUCCESS if nothing has.
  using Run = std::function<void(CUresult)>;

  // `fence`: not before one that was added earlier.
  void add(uint64_t fence, Run run) { waiting.push_back({fence, std::move(run)}); }

  bool isEmpty() const { return waiting.empty(); }

  // Runs those whose fences have passed. A continuation may add others, which are looked at the next time.
  void poll(const DeviceProgress& progress);

 private:
  struct Continuation {
    uint64_t fence;
    Run run;
  };
  std::deque<Continuation> waiting;
};

}  // namespace vgpu::stub
