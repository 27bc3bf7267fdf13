// A parameter that is a Data list of described elements (vgpu/api/described.h): copied from the program's memory, checked as CUDA checks
// it, with handles converted to those of frames. Local to a call; the program may change its memory as soon as add() has returned.
#pragma once

#include <cuda.h>
#include <kj/array.h>

#include <vector>

#include "intercept/session/thread.h"
#include "vgpu/api/described.h"

namespace vgpu::client {

class Packed {
 public:
  // Adds the `count` elements at `source`. CUDA_ERROR_INVALID_VALUE if `source` is null and not `optional`, for a number that its
  // enumeration does not have, and for memory that is not the session's; the error for a handle that is not live; CUDA_ERROR_OUT_OF_MEMORY
  // for more than a frame takes.
  CUresult add(Thread& thread, const api::Described& element, const void* source, uint64_t count, bool optional);
  // Adds a single structure.
  CUresult add(Thread& thread, const api::Described& element, const void* source, bool optional = false) {
    return source == nullptr && !optional ? CUDA_ERROR_INVALID_VALUE : add(thread, element, source, source != nullptr, optional);
  }

  kj::ArrayPtr<const kj::byte> get() const { return kj::arrayPtr(bytes.data(), bytes.size()); }
  size_t size() const { return bytes.size(); }

 private:
  std::vector<kj::byte> bytes;
};

}  // namespace vgpu::client
