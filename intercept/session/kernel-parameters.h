// A kernel's parameters, gathered into one block: from the program's array of pointers, one for each parameter, or from a block that the
// program passes.
#pragma once

#include <cuda.h>
#include <kj/common.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "intercept/session/kinds/function.h"
#include "intercept/session/managed/managed-memory.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

class KernelParameters {
 public:
  // Takes the program's arguments; copies nothing yet. CUDA's error if they are inconsistent.
  CUresult check(const FunctionLayout& function, void** kernelParams, void** extra) {
    pointers = kernelParams;
    if (extra != nullptr && (kernelParams != nullptr || !readExtra(extra))) return CUDA_ERROR_INVALID_VALUE;
    if (block != nullptr) return blockBytes > function.parameterBytes ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    return pointers == nullptr && !function.parameters.empty() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }

  // Copies them out of managed memory, if they are there: a thread that has reserved a frame must not access managed memory.
  void takeOut(const ManagedMemory& managed, const FunctionLayout& function, std::vector<kj::byte>& into) {
    auto isManaged = [&](const void* memory) { return managed.mayHold(toWire(memory)); };
    bool any = block != nullptr ? isManaged(block) : std::any_of(pointers, pointers + function.parameters.size(), isManaged);
    if (!any) return;
    into.resize(function.parameterBytes + 1);
    gather(function, into.data());
    block = into.data();
    blockBytes = function.parameterBytes;
  }

  // Writes function.parameterBytes bytes.
  void gather(const FunctionLayout& function, kj::byte* into) const {
    if (block != nullptr) {
      std::memcpy(into, block, blockBytes);
      std::memset(into + blockBytes, 0, function.parameterBytes - blockBytes);  // missing parameters are zero
      return;
    }
    void* const* from = pointers;
    for (auto& parameter : function.parameters) {
      kj::byte* to = into + parameter.offset;
      const void* value = *from++;
      switch (parameter.bytes) {  // nearly all have one of these two sizes: inlined copies
        case 4: std::memcpy(to, value, 4); break;
        case 8: std::memcpy(to, value, 8); break;
        default: std::memcpy(to, value, parameter.bytes);
      }
    }
  }

  // The size of the block that the program gave; 0 if it gave pointers.
  size_t givenBlock() const { return block != nullptr ? blockBytes : 0; }

 private:
  // `extra` is CUDA's list of (key, value) pairs. False if it is invalid.
  bool readExtra(void** extra) {
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
        block = extra[1];
      } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
        blockBytes = *static_cast<size_t*>(extra[1]);
      } else {
        return false;
      }
    }
    return block != nullptr || blockBytes == 0;
  }

  void** pointers = nullptr;
  const void* block = nullptr;
  size_t blockBytes = 0;
};

}  // namespace vgpu::client
