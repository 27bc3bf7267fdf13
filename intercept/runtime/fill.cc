// Filling memory with a byte.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

unsigned char toByte(int value) { return static_cast<unsigned char>(value); }

/// Fills rows of memory, in a stream.
CUresult fill(CUdeviceptr to, size_t pitch, int value, size_t width, size_t rows, CUstream stream) {
  return cuMemsetD2D8Async(to, pitch, toByte(value), width, rows, stream);
}

/// The same without a stream, ordered by the default stream: host memory has been filled when the function returns, device memory is filled
/// in stream order (CUDA Runtime API, "API synchronization behavior", Memset).
CUresult fill(CUdeviceptr to, size_t pitch, int value, size_t width, size_t rows, LegacyDefaultStream) {
  return cuMemsetD2D8(to, pitch, toByte(value), width, rows);
}

CUresult fill(CUdeviceptr to, size_t pitch, int value, size_t width, size_t rows, PerThreadDefaultStream) {
  CUresult result = fill(to, pitch, value, width, rows, CU_STREAM_PER_THREAD);
  if (result != CUDA_SUCCESS) return result;
  CUmemorytype type = CU_MEMORYTYPE_DEVICE;
  unsigned waits = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
  void* answers[] = {&type, &waits};
  cuPointerGetAttributes(2, asked, answers, to);
  return type == CU_MEMORYTYPE_HOST || waits != 0 ? cuStreamSynchronize(CU_STREAM_PER_THREAD) : CUDA_SUCCESS;
}

template <class On>
cudaError_t fillRows(void* to, size_t pitch, int value, size_t width, size_t rows, On on) {
  if (width == 0 || rows == 0) return cudaSuccess;
  return answer(fill(toDevice(to), pitch, value, width, rows, on));
}

/// A slice has `ysize` rows, of which `height`, but at most `ysize`, are filled (docs/facts.md).
template <class On>
cudaError_t fillBox(cudaPitchedPtr to, int value, cudaExtent extent, On on) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  if (extent.height > to.ysize) return cudaErrorInvalidValue;
  size_t sliceBytes, allBytes, rows;
  if (__builtin_mul_overflow(to.pitch, to.ysize, &sliceBytes) || __builtin_mul_overflow(sliceBytes, extent.depth, &allBytes) ||
      __builtin_mul_overflow(extent.height, extent.depth, &rows))
    return cudaErrorInvalidValue;  // more than the address space holds
  if (extent.height == to.ysize) return fillRows(to.ptr, to.pitch, value, extent.width, rows, on);
  for (size_t slice = 0; slice < extent.depth; ++slice) {
    void* start = toPointer(toDevice(to.ptr) + slice * sliceBytes);
    cudaError_t error = fillRows(start, to.pitch, value, extent.width, extent.height, on);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME_SYNC(cudaMemset, (void* to, int value, size_t bytes), fill(toDevice(to), 0, value, bytes, 1, on))
RUNTIME_STREAM(cudaMemsetAsync, (void* to, int value, size_t bytes, cudaStream_t stream),
               cuMemsetD8Async(toDevice(to), toByte(value), bytes, on(stream)))
RUNTIME_SYNC(cudaMemset2D, (void* to, size_t pitch, int value, size_t width, size_t height),
             fillRows(to, pitch, value, width, height, on))
RUNTIME_STREAM(cudaMemset2DAsync, (void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
               fillRows(to, pitch, value, width, height, on(stream)))
RUNTIME_SYNC(cudaMemset3D, (cudaPitchedPtr to, int value, cudaExtent extent), fillBox(to, value, extent, on))
RUNTIME_STREAM(cudaMemset3DAsync, (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream),
               fillBox(to, value, extent, on(stream)))
