// Arrays, and mipmapped ones.
#pragma once

#include <cuda.h>

#include <memory>

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

// An array's description by the program, or by the worker for a level of a mipmapped array.
struct ArrayLayout {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  uint32_t elementBytes = 0;
  uint64_t mipmap = 0;  // the mipmapped array of which this is a level

  uint64_t rowBytes() const { return shape.Width * elementBytes; }
  uint64_t rows() const { return shape.Height == 0 ? 1 : shape.Height; }
  uint64_t slices() const { return shape.Depth == 0 ? 1 : shape.Depth; }
  CUDA_ARRAY_DESCRIPTOR flatShape() const { return {shape.Width, shape.Height, shape.Format, shape.NumChannels}; }
};

struct ArrayState : ObjectHead {
  std::unique_ptr<ArrayLayout> layout;  // of a live one never null

  void reset() { layout.reset(); }
};

}  // namespace vgpu::client
