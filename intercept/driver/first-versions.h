// The first versions of entries, whose sizes are 32 bits wide. Entries whose addresses are 32 bits wide too are refused by the table: a
// session has no memory at such addresses.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace vgpu::client {

// `value`, or the largest 32-bit number.
inline unsigned saturated(uint64_t value) {
  return static_cast<unsigned>(std::min<uint64_t>(value, std::numeric_limits<unsigned>::max()));
}

inline CUresult memGetInfo(unsigned* free, unsigned* total) {
  size_t freeBytes = 0, totalBytes = 0;
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = cuMemGetInfo_v2(&freeBytes, &totalBytes)) return error;
  *free = saturated(freeBytes);
  *total = saturated(totalBytes);
  return CUDA_SUCCESS;
}

// Creates an array of one to three dimensions. `First` has the field names of the later version's structure.
template <typename First>
CUresult createArray(CUarray* out, const First* first) {
  if (first == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR shape{first->Width, first->Height, 0, first->Format, first->NumChannels, 0};
  if constexpr (requires { first->Depth; }) {
    shape.Depth = first->Depth;
    shape.Flags = first->Flags;
  }
  return cuArray3DCreate_v2(out, &shape);
}
template <typename First>
CUresult describeArray(First* out, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR shape;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = cuArray3DGetDescriptor_v2(&shape, array)) return error;
  out->Width = saturated(shape.Width);
  out->Height = saturated(shape.Height);
  out->Format = shape.Format;
  out->NumChannels = shape.NumChannels;
  if constexpr (requires { out->Depth; }) {
    out->Depth = saturated(shape.Depth);
    out->Flags = shape.Flags;
  }
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
