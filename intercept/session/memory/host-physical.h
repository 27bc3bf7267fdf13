// Physical memory of the host (cuMemCreate with a host location): pinned memory of the session or, if it is shareable with other processes,
// an in-memory file, sealed against resizing, whose descriptor is the handle that programs pass on. The file lives as long as any process
// has it (docs/ipc.md).
#pragma once

#include <cuda.h>

#include <optional>

#include "intercept/session/given-files.h"
#include "intercept/session/memory/second-mapping.h"

namespace vgpu::client {

class Thread;

class HostPhysical {
 public:
  // Creates new memory, fully populated. All functions return CUDA's results.
  static CUresult make(Thread& thread, uint64_t bytes, bool isShareable, HostPhysical& made);
  // Opens the memory of any process's descriptor, which stays the caller's. isIn(): whether the descriptor is of such memory.
  static CUresult import(Thread& thread, int descriptor, HostPhysical& found);
  static bool isIn(int descriptor);
  CUresult exportTo(int& descriptor) const;
  // Maps it at an address that the program has reserved, here and in the worker.
  CUresult map(Thread& thread, uint64_t address, std::optional<SecondMapping>& mapping) const;
  // Ends the session's own memory. Imported memory lives as long as any copy of this object.
  CUresult end(Thread& thread) const;

  uint64_t bytes() const { return size; }
  CUmemAllocationProp properties() const;

 private:
  CUresult allocate(Thread& thread);
  CUresult makeFile(Thread& thread);
  CUresult give(Thread& thread, kj::AutoCloseFd descriptor);

  uint64_t size = 0;
  uint64_t arenaAddress = 0;  // if it is pinned memory
  GivenFiles::File file;      // if it is shareable
  bool isShareable = false;   // whether this process may export it
};

}  // namespace vgpu::client
