// CUDA arrays: memory of one to three dimensions, layers and faces, whose layout is the device's own. Here it is rows
// of elements, a whole number of bytes apart, slice after slice.
#pragma once

#include <memory>
#include <vector>

#include "stub/emulator/memory/span.h"

namespace vgpu::emulator::api {

// Bytes of one element: the format's size times the channels; 0 for a format that arrays cannot have.
unsigned elementBytes(CUarray_format format, unsigned channels);

struct Array {
  Array(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& descriptor);
  ~Array();
  Array(const Array&) = delete;

  Context& context;
  CUarray handle = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor;
  uint64_t element = 0, rowBytes = 0, rows = 0, slices = 0;  // rows a slice, slices with layers and faces
  uint64_t address = 0;
  bool levelOfMipmap = false;  // cannot be destroyed by itself
  uint64_t bytes() const { return rowBytes * rows * slices; }
};

struct MipmappedArray {
  MipmappedArray(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels);
  Context& context;
  CUmipmappedArray handle = nullptr;
  std::vector<std::shared_ptr<Array>> levels;
};

}  // namespace vgpu::emulator::api
