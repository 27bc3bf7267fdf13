// A buffer for elements that the driver writes, as many as a frame says, bounded by what a reply can hold.
#pragma once

#include <cuda.h>
#include <kj/array.h>

#include <algorithm>
#include <vector>

#include "vgpu/wire/segment.h"

namespace vgpu::stub {

template <typename Element>
class Room {
 public:
  explicit Room(uint64_t count) : isTooLarge(count > mostBytes / sizeof(Element)), elements(isTooLarge ? 0 : count) {}

  // CUDA_ERROR_INVALID_VALUE if a reply cannot hold that many.
  CUresult check() const { return isTooLarge ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
  // Null if there are no elements.
  Element* get() { return elements.empty() ? nullptr : elements.data(); }
  // The elements written, if the driver reports `count`, which may be more than the buffer holds.
  kj::ArrayPtr<const kj::byte> filled(uint64_t count) const {
    return kj::arrayPtr(elements.data(), std::min<uint64_t>(count, elements.size())).asBytes();
  }

 private:
  static constexpr uint64_t mostBytes = maxReplyBytes / 4;  // a reply may contain several lists

  bool isTooLarge;
  std::vector<Element> elements;
};

}  // namespace vgpu::stub
