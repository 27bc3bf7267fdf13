// Pinned memory of an executable graph, between the program's pageable memory and the device (executable.h).
#pragma once

#include "intercept/session/failure.h"
#include "intercept/session/graph/executable.h"

namespace vgpu::client {

// One for each copy: launches of the graph are ordered, so two launches never use it at the same time.
class Executable::Staging {
 public:
  static CUresult make(Thread& thread, uint64_t bytes, std::shared_ptr<Staging>& made) {
    Memory& memory = thread.session.memory;
    uint64_t address = 0;
    if (!memory.mayShareHost()) return refuse();
    if (CUresult error = memory.allocateHost(thread, bytes, 0, HostKind::staging, thread.owner(), address)) return error;
    if (!memory.isShared(address)) {
      memory.freeHost(thread, address);
      return refuse();
    }
    made = std::make_shared<Staging>(address, bytes);
    return CUDA_SUCCESS;
  }
  Staging(uint64_t address, uint64_t bytes) : address(address), bytes(bytes) {}
  const uint64_t address, bytes;

 private:
  // Refused without shared memory: the host function would have to send the bytes while the GPU waits for it.
  static CUresult refuse() {
    reportFailure("a graph that copies pageable memory needs a GPU on the program's host; use memory of cudaMallocHost instead");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
};

}  // namespace vgpu::client
