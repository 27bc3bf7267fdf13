// What the working thread does when the GPU has come far enough: so no handler waits for the GPU, and another thread's call,
// which may be what that wait needs, is executed meanwhile.
//
// The working thread's, between two frames. A continuation waits for marks (device-progress.h), of its own device or of
// several, and then runs once. Those that can run do so in the order in which they were added; each that waits for a device
// comes behind those added before it. At a barrier all have run: Worker::quiesce() sees to it, and of this a suspend keeps nothing.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "stub/worker/device-progress.h"

namespace vgpu::stub {

struct Mark {
  unsigned device;
  uint64_t number;
};

class Continuations {
 public:
  using Devices = std::span<const std::unique_ptr<DeviceProgress>>;
  // Is told what has ended its device's context meanwhile; CUDA_SUCCESS where nothing has.
  using Run = std::function<void(CUresult)>;

  void add(unsigned device, std::vector<Mark> marks, Run run);

  bool isEmpty() const { return waiting.empty(); }
  // Whether any are left of `device`.
  bool has(unsigned device) const;

  // Runs those whose marks have passed. A continuation may add others, which are looked at the next time.
  void poll(Devices devices);

 private:
  struct Continuation {
    unsigned device;
    std::vector<Mark> marks;
    Run run;
  };
  std::list<Continuation> waiting;
};

}  // namespace vgpu::stub
