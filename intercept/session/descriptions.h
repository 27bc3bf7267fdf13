// Descriptions of libraries in the worker (cuBLASLt's layouts, descriptors, preferences): made when something uses them first, and kept for
// the next one that is alike when the program destroys them. So a product of matrices that is described as one before is one frame.
//
// Each is made with the variables of the environment that the last object was which the library was asked for: after a resume one may be
// the first that a library makes.
//
// Of a session; any thread. `making` is held while frames are posted; the table of what is idle has a mutex of its own.
#pragma once

#include <cuda.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "intercept/session/idle-descriptions.h"

namespace vgpu::client {

class Thread;

class Descriptions {
 public:
  // Something uses it now. All of it is like what has succeeded before. CUDA's result.
  CUresult make(Thread& thread, LibraryObject& object) {
    return object.isPending() ? makeNow(thread, object) : CUDA_SUCCESS;
  }
  // The list with which an object is made now (vgpu/api/library-variables.h).
  void note(std::string list) {
    std::lock_guard lock(making);
    variables = std::move(list);
  }
  // The program has ended it, by that entry or otherwise (null); it has no handle of the program's any more.
  CUresult end(Thread& thread, std::unique_ptr<LibraryObject> object, const api::LibraryEntry* destroy);

 private:
  CUresult makeNow(Thread& thread, LibraryObject& object);

  std::mutex making;
  std::string variables;  // under `making`
  IdleDescriptions idle;
};

// Ends an object of the worker's.
CUresult sendLibraryDestroy(Thread& thread, uint64_t handle, const api::LibraryEntry* destroy);

}  // namespace vgpu::client
