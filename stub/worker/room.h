// Room for elements that the driver writes, as many as a frame says, and what a reply takes of them.
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

  // CUDA_ERROR_INVALID_VALUE for more than a reply takes.
  CUresult check() const { return isTooLarge ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
  // Null if there is room for none.
  Element* get() { return elements.empty() ? nullptr : elements.data(); }
  // Of which the driver has written `count`, or has more than there was room for.
  kj::ArrayPtr<const kj::byte> filled(uint64_t count) const {
    return kj::arrayPtr(elements.data(), std::min<uint64_t>(count, elements.size())).asBytes();
  }

 private:
  static constexpr uint64_t mostBytes = maxReplyBytes / 4;  // a reply may have several

  bool isTooLarge;
  std::vector<Element> elements;
};

}  // namespace vgpu::stub
