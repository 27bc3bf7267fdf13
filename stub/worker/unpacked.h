// A Data list of described elements (vgpu/api/described.h) as the driver takes it: a copy with real handles. Nothing of what a
// program has sent is used unchecked. For one call of the driver, on the thread of its GPU.
#pragma once

#include <cuda.h>
#include <kj/array.h>

#include <vector>

#include "vgpu/api/described.h"

namespace vgpu::stub {

class Execution;

class Unpacked {
 public:
  // Throws kj::Exception on a list that is none of such elements, BadHandle on one that names an object which is not there.
  Unpacked(Execution& on, const api::Described& element, kj::ArrayPtr<const kj::byte> data);
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  // CUDA_ERROR_INVALID_VALUE for memory that is not the session's, and if there are not as many elements as the call says;
  // nothing of it may be given to the driver then.
  CUresult check(uint64_t count, bool optional = false) const {
    return refused == CUDA_SUCCESS && !(optional && elements == 0) && count != elements ? CUDA_ERROR_INVALID_VALUE : refused;
  }
  size_t count() const { return elements; }
  // The elements; null if there are none.
  template <typename Element>
  Element* get() {
    return elements == 0 ? nullptr : list<Element>();
  }
  // Never null: of a list that the program must give, however short. The driver refuses null for strides of which it reads none.
  template <typename Element>
  Element* list() {
    return static_cast<Element*>(static_cast<void*>(copy.data()));
  }

 private:
  std::vector<uint64_t> copy;  // aligned as every type of the header; not empty
  size_t elements = 0;
  CUresult refused = CUDA_SUCCESS;
};

}  // namespace vgpu::stub
