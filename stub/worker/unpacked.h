// A Data list of described elements (vgpu/api/described.h) in the driver's form: a copy with real handles. Everything that the program sent
// is checked. For one call of the driver, on the thread of its GPU.
#pragma once

#include <cuda.h>
#include <kj/array.h>

#include <vector>

#include "vgpu/api/described.h"

namespace vgpu::stub {

class Execution;

class Unpacked {
 public:
  // Throws kj::Exception if the data are not a list of such elements, BadHandle if an element names an object that does not exist.
  Unpacked(Execution& on, const api::Described& element, kj::ArrayPtr<const kj::byte> data);
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  // CUDA_ERROR_INVALID_VALUE if an element names memory that is not the session's, or if the number of elements is not `count`; then
  // nothing of the list may be given to the driver.
  CUresult check(uint64_t count, bool optional = false) const {
    return refused == CUDA_SUCCESS && !(optional && elements == 0) && count != elements ? CUDA_ERROR_INVALID_VALUE : refused;
  }
  size_t count() const { return elements; }
  // The elements; null if there are none.
  template <typename Element>
  Element* get() {
    return elements == 0 ? nullptr : list<Element>();
  }
  // Never null, for a list that the call requires even if it is empty: the driver refuses null for strides even if it reads none.
  template <typename Element>
  Element* list() {
    return static_cast<Element*>(static_cast<void*>(copy.data()));
  }

 private:
  std::vector<uint64_t> copy;  // aligned for every type of the header; never empty
  size_t elements = 0;
  CUresult refused = CUDA_SUCCESS;
};

}  // namespace vgpu::stub
