// What a GPU's thread does when the GPU has reached a fence. So no handler waits for the GPU, and other calls, for which the GPU's work may
// be waiting, are executed meanwhile.
//
// Used by the thread of that GPU, between two frames. A continuation waits for a fence (device-progress.h) and then runs once. They run in
// the order in which they were added. At a barrier all have run, which Worker::quiesce() ensures, so a suspend keeps nothing of this.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "stub/gpu/device-progress.h"

namespace vgpu::stub {

class Continuations {
 public:
  // Its argument is the error that has ended the GPU's context meanwhile; CUDA_SUCCESS if there is none.
  using Run = std::function<void(CUresult)>;

  // `fence`: not earlier than that of a continuation added before.
  void add(uint64_t fence, Run run) { waiting.push_back({fence, std::move(run)}); }

  bool isEmpty() const { return waiting.empty(); }

  // Runs those whose fences have passed. A continuation may add others, which run at a later call.
  void poll(const DeviceProgress& progress);

 private:
  struct Continuation {
    uint64_t fence;
    Run run;
  };
  std::deque<Continuation> waiting;
};

}  // namespace vgpu::stub
