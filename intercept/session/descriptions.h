// Descriptions of libraries in the worker (cuBLASLt's layouts, descriptors, preferences): made at their first use, and kept for reuse by an
// identical one when the program destroys them. So a matrix product described like an earlier one takes a single frame.
//
// Each is made with the environment variables of the last object that a library was asked to make: after a resume a description may be the
// first object that the library makes.
//
// Owned by the session; any thread. `making` is held while frames are posted; the table of idle descriptions has its own mutex.
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
  // Makes the object in the worker before a use, if it is pending; an identical one has succeeded before. CUDA's result.
  CUresult make(Thread& thread, LibraryObject& object) {
    return object.isPending() ? makeNow(thread, object) : CUDA_SUCCESS;
  }
  // The list of environment variables with which the library makes objects now (vgpu/api/library-variables.h).
  void note(std::string list) {
    std::lock_guard lock(making);
    variables = std::move(list);
  }
  // The object has ended, by that entry or otherwise (null); no handle of the program's refers to it any more.
  CUresult end(Thread& thread, std::unique_ptr<LibraryObject> object, const api::LibraryEntry* destroy);

 private:
  CUresult makeNow(Thread& thread, LibraryObject& object);

  std::mutex making;
  std::string variables;  // under `making`
  IdleDescriptions idle;
};

// Ends an object in the worker.
CUresult sendLibraryDestroy(Thread& thread, uint64_t handle, const api::LibraryEntry* destroy);

}  // namespace vgpu::client
