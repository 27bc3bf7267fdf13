// An attribute of a pool, or of the memory of a device's graphs: where its value is stored, and how a program may set it.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace vgpu::client {

struct MemoryAttribute {
  int* toggle = nullptr;              // if it is a switch
  uint64_t* bytes = nullptr;          // if it is a number; both null: there is no such attribute
  const uint64_t* current = nullptr;  // of a high-water mark: setting zero resets it to this; no other value is valid
  bool isFree = false;                // any number is valid

  // The value is an int for a switch, else a cuuint64_t.
  CUresult get(void* value) const {
    if (toggle != nullptr) return *static_cast<int*>(value) = *toggle, CUDA_SUCCESS;
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *static_cast<cuuint64_t*>(value) = *bytes, CUDA_SUCCESS;
  }
  CUresult set(const void* value) const {
    if (toggle != nullptr) return *toggle = *static_cast<const int*>(value) != 0, CUDA_SUCCESS;
    const uint64_t wanted = *static_cast<const cuuint64_t*>(value);
    if (bytes == nullptr || !(isFree || (current != nullptr && wanted == 0))) return CUDA_ERROR_INVALID_VALUE;
    return *bytes = current != nullptr ? *current : wanted, CUDA_SUCCESS;
  }
};

}  // namespace vgpu::client
