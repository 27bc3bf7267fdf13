// Physical memory of the host (cuMemCreate with such a location): pinned memory of the session, or, if other processes may have it too, a
// file in memory, sealed against resizing, whose descriptor is the handle that programs pass on. That lives as long as any process has
// it (docs/ipc.md).
#pragma once

#include <cuda.h>

#include <optional>

#include "intercept/session/given-files.h"
#include "intercept/session/memory/second-mapping.h"

namespace vgpu::client {

class Thread;

class HostPhysical {
 public:
  // CUDA's results. New memory, all of which is there.
  static CUresult make(Thread& thread, uint64_t bytes, bool isShareable, HostPhysical& made);
  // What a descriptor of any process has, which stays the caller's; whether it has such memory.
  static CUresult import(Thread& thread, int descriptor, HostPhysical& found);
  static bool isIn(int descriptor);
  CUresult exportTo(int& descriptor) const;
  // At an address that the program has reserved, here and in the worker.
  CUresult map(Thread& thread, uint64_t address, std::optional<SecondMapping>& mapping) const;
  // What of it is the session's ends. What is imported is as long as any copy of this is.
  CUresult end(Thread& thread) const;

  uint64_t bytes() const { return size; }
  CUmemAllocationProp properties() const;

 private:
  CUresult allocate(Thread& thread);
  CUresult makeFile(Thread& thread);
  CUresult give(Thread& thread, kj::AutoCloseFd descriptor);

  uint64_t size = 0;
  uint64_t arenaAddress = 0;  // of pinned memory
  GivenFiles::File file;      // or of what others may have
  bool isShareable = false;   // by this process
};

}  // namespace vgpu::client
