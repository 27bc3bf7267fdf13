// Arrays and mipmapped arrays.
#pragma once

#include <cuda.h>

#include <memory>

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

// An array's description, by the program; for a level of a mipmapped array and a plane of an array, by the worker.
struct ArrayLayout {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  uint32_t unitBytes = 0, unitSide = 1;  // the unit of copies: an element, or a block of side × side elements
  uint32_t planes = 0;                   // how many planes it consists of; such an array has no bytes of its own
  uint64_t whole = 0;                    // the array or mipmapped array of which this is a part; 0: none

  uint64_t rowBytes() const { return units(shape.Width) * unitBytes; }
  uint64_t rows() const { return shape.Height == 0 ? 1 : units(shape.Height); }
  uint64_t slices() const { return shape.Depth == 0 ? 1 : shape.Depth; }
  // Whether copies may start and end inside a unit, as they may inside an element, but not inside a block.
  bool isOfBytes() const { return unitSide == 1; }
  CUDA_ARRAY_DESCRIPTOR flatShape() const { return {shape.Width, shape.Height, shape.Format, shape.NumChannels}; }

 private:
  uint64_t units(uint64_t elements) const { return (elements + unitSide - 1) / unitSide; }
};

struct ArrayState : ObjectHead {
  std::unique_ptr<ArrayLayout> layout;  // never null while the array is live

  void reset() { layout.reset(); }
};

}  // namespace vgpu::client
