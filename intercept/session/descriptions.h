// Descriptions of libraries in the worker (cuBLASLt's layouts, descriptors, preferences): made when something uses them first, and kept for
// the next one that is alike when the program destroys them. So a product of matrices that is described as one before is one frame.
//
// Of a session; any thread. `making` is held while frames are posted; the table of what is idle has a mutex of its own.
#pragma once

#include <cuda.h>

#include <memory>
#include <mutex>

#include "intercept/session/idle-descriptions.h"

namespace vgpu::client {

class Thread;

class Descriptions {
 public:
  // Something uses it now. All of it is like what has succeeded before. CUDA's result.
  CUresult make(Thread& thread, LibraryObject& object) {
    return object.isPending() ? makeNow(thread, object) : CUDA_SUCCESS;
  }
  // The program has ended it, by that entry or otherwise (null); it has no handle of the program's any more.
  CUresult end(Thread& thread, std::unique_ptr<LibraryObject> object, const api::LibraryEntry* destroy);

 private:
  CUresult makeNow(Thread& thread, LibraryObject& object);

  std::mutex making;
  IdleDescriptions idle;
};

// Ends an object of the worker's.
CUresult sendLibraryDestroy(Thread& thread, uint64_t handle, const api::LibraryEntry* destroy);

}  // namespace vgpu::client
