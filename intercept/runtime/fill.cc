// Filling memory with a byte.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

unsigned char toByte(int value) { return static_cast<unsigned char>(value); }

cudaError_t fillRows(void* to, size_t pitch, int value, size_t width, size_t rows, CUstream stream) {
  if (width == 0 || rows == 0) return cudaSuccess;
  return answer(cuMemsetD2D8Async(toDevice(to), pitch, toByte(value), width, rows, stream));
}

/// Slices lie `ysize` rows apart, of which `height` are filled.
cudaError_t fillBox(cudaPitchedPtr to, int value, cudaExtent extent, CUstream stream) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  size_t sliceBytes, allBytes, rows;
  if (__builtin_mul_overflow(to.pitch, to.ysize, &sliceBytes) || __builtin_mul_overflow(sliceBytes, extent.depth, &allBytes) ||
      __builtin_mul_overflow(extent.height, extent.depth, &rows))
    return cudaErrorInvalidValue;  // more than there are addresses
  if (extent.height == to.ysize) return fillRows(to.ptr, to.pitch, value, extent.width, rows, stream);
  for (size_t slice = 0; slice < extent.depth; ++slice) {
    void* start = toPointer(toDevice(to.ptr) + slice * sliceBytes);
    cudaError_t error = fillRows(start, to.pitch, value, extent.width, extent.height, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

/// The functions without a stream: what they fill is ordered by the default stream, and on the device they are as
/// asynchronous as the ones with a stream (CUDA Runtime API, "API synchronization behavior", Memset).
template <class On>
CUstream defaultStream(On on) {
  return on(nullptr);
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME_SYNC(cudaMemset, (void* to, int value, size_t bytes),
             on.perThread ? cuMemsetD8Async(toDevice(to), toByte(value), bytes, defaultStream(on))
                          : cuMemsetD8(toDevice(to), toByte(value), bytes))
RUNTIME_STREAM(cudaMemsetAsync, (void* to, int value, size_t bytes, cudaStream_t stream),
               cuMemsetD8Async(toDevice(to), toByte(value), bytes, on(stream)))
RUNTIME_SYNC(cudaMemset2D, (void* to, size_t pitch, int value, size_t width, size_t height),
             fillRows(to, pitch, value, width, height, defaultStream(on)))
RUNTIME_STREAM(cudaMemset2DAsync, (void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
               fillRows(to, pitch, value, width, height, on(stream)))
RUNTIME_SYNC(cudaMemset3D, (cudaPitchedPtr to, int value, cudaExtent extent),
             fillBox(to, value, extent, defaultStream(on)))
RUNTIME_STREAM(cudaMemset3DAsync, (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream),
               fillBox(to, value, extent, on(stream)))
