// Copies of rectangles and boxes, all described as the driver's three-dimensional copy.
//
// The driver counts bytes and rows; the runtime counts x in elements if an array is on either side. A `Side` is one end of a copy in the
// driver's terms.
#pragma once
#include <cuda.h>
#include <driver_types.h>

namespace vgpu::runtime {

struct Side {
  void* memory = nullptr;  ///< or an array:
  CUarray array = nullptr;
  size_t pitch = 0;   ///< bytes from row to row of memory
  size_t height = 0;  ///< rows from slice to slice of memory; 0 for a single slice
  size_t x = 0;       ///< bytes
  size_t y = 0, z = 0;
};

struct Box {
  size_t width;  ///< bytes
  size_t height, depth;
};

/// The driver's description; cudaErrorInvalidPitchValue if a row does not fit its pitch.
cudaError_t describeCopy(const Side& to, const Side& from, const Box& box, cudaMemcpyKind kind, CUDA_MEMCPY3D& copy);
/// The same from cudaMemcpy3D's parameters, which are not read if there is nothing to copy.
cudaError_t describeCopy(const cudaMemcpy3DParms* parameters, CUDA_MEMCPY3D& copy);
/// The inverse conversion, for graph nodes' queries.
cudaMemcpy3DParms parametersOf(const CUDA_MEMCPY3D& copy);

/// The bytes of one element of an array.
CUresult elementSize(CUarray array, size_t& bytes);

}  // namespace vgpu::runtime
