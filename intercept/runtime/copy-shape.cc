// Copies of rectangles and boxes, of memory and of arrays.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/copy.h"
#include "intercept/runtime/rows.h"
#include "intercept/runtime/shape.h"

namespace vgpu::runtime {
namespace {

bool isEmpty(const CUDA_MEMCPY3D& copy) { return copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0; }

cudaError_t runInStream(const CUDA_MEMCPY3D& copy, CUstream stream) {
  return isEmpty(copy) ? cudaSuccess : answer(cuMemcpy3DAsync(&copy, stream));
}

cudaError_t run(const CUDA_MEMCPY3D& copy, LegacyDefaultStream) {
  return isEmpty(copy) ? cudaSuccess : answer(cuMemcpy3D(&copy));
}

cudaError_t run(const CUDA_MEMCPY3D& copy, PerThreadDefaultStream) {
  cudaError_t error = runInStream(copy, CU_STREAM_PER_THREAD);
  return error != cudaSuccess ? error : answer(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

/// Copies a rectangle of rows. Arguments are not checked if there is nothing to copy.
template <class Run>
cudaError_t copyRowsBy(const Side& to, const Side& from, size_t width, size_t height, cudaMemcpyKind kind, Run runCopy) {
  CUDA_MEMCPY3D copy;
  if (width == 0 || height == 0) return cudaSuccess;
  cudaError_t error = describeCopy(to, from, {width, height, 1}, kind, copy);
  return error != cudaSuccess ? error : runCopy(copy);
}

/// As copyRowsBy(), ordered by the default stream or in a stream, as `on` says.
template <class On>
cudaError_t copyRows(const Side& to, const Side& from, size_t width, size_t height, cudaMemcpyKind kind, On on) {
  return copyRowsBy(to, from, width, height, kind, [&](auto& copy) { return run(copy, on); });
}

/// As copyRows(), between arrays, which are device memory.
template <class On>
cudaError_t copyArrays(const Side& to, const Side& from, size_t width, size_t height, cudaMemcpyKind kind, On on) {
  const bool isInside = reachesDevice(kind, cudaMemcpyDeviceToDevice);
  return isInside ? copyRows(to, from, width, height, kind, on) : cudaErrorInvalidMemcpyDirection;
}

cudaError_t copyRowsInStream(const Side& to, const Side& from, size_t width, size_t height, cudaMemcpyKind kind,
                             CUstream stream) {
  return copyRowsBy(to, from, width, height, kind, [&](auto& copy) { return runInStream(copy, stream); });
}

template <class Run>
cudaError_t copyBox(const cudaMemcpy3DParms* parameters, Run runCopy) {
  CUDA_MEMCPY3D copy;
  cudaError_t error = describeCopy(parameters, copy);
  return error != cudaSuccess ? error : runCopy(copy);
}

template <class Run>
cudaError_t copyPeerBox(const cudaMemcpy3DPeerParms* p, Run runCopy) {
  if (p == nullptr) return cudaErrorInvalidValue;
  if (cudaError_t error = checkDevices(p->dstDevice, p->srcDevice); error != cudaSuccess) return error;
  cudaMemcpy3DParms parameters = {p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                                  p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDefault};
  return copyBox(&parameters, runCopy);
}

Side rowsOf(const void* memory, size_t pitch) { return {.memory = const_cast<void*>(memory), .pitch = pitch}; }
Side rowsOf(const void* array, size_t x, size_t y) { return {.array = handle<CUarray>(array), .x = x, .y = y}; }

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME_SYNC(cudaMemcpy2D,
             (void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height,
              cudaMemcpyKind kind),
             copyRows(rowsOf(to, toPitch), rowsOf(from, fromPitch), width, height, kind, on))
RUNTIME_STREAM(cudaMemcpy2DAsync,
               (void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height,
                cudaMemcpyKind kind, cudaStream_t stream),
               copyRowsInStream(rowsOf(to, toPitch), rowsOf(from, fromPitch), width, height, kind, on(stream)))
RUNTIME_SYNC(cudaMemcpy2DToArray,
             (cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
              cudaMemcpyKind kind),
             copyRows(rowsOf(to, x, y), rowsOf(from, pitch), width, height, kind, on))
RUNTIME_STREAM(cudaMemcpy2DToArrayAsync,
               (cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                cudaMemcpyKind kind, cudaStream_t stream),
               copyRowsInStream(rowsOf(to, x, y), rowsOf(from, pitch), width, height, kind, on(stream)))
RUNTIME_SYNC(cudaMemcpy2DFromArray,
             (void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
              cudaMemcpyKind kind),
             copyRows(rowsOf(to, pitch), rowsOf(from, x, y), width, height, kind, on))
RUNTIME_STREAM(cudaMemcpy2DFromArrayAsync,
               (void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
                cudaMemcpyKind kind, cudaStream_t stream),
               copyRowsInStream(rowsOf(to, pitch), rowsOf(from, x, y), width, height, kind, on(stream)))
RUNTIME_SYNC(cudaMemcpy2DArrayToArray,
             (cudaArray_t to, size_t toX, size_t toY, cudaArray_const_t from, size_t fromX, size_t fromY, size_t width,
              size_t height, cudaMemcpyKind kind),
             copyArrays(rowsOf(to, toX, toY), rowsOf(from, fromX, fromY), width, height, kind, on))

RUNTIME_SYNC(cudaMemcpy3D, (const cudaMemcpy3DParms* p), copyBox(p, [&](auto& copy) { return run(copy, on); }))
RUNTIME_STREAM(cudaMemcpy3DAsync, (const cudaMemcpy3DParms* p, cudaStream_t stream),
               copyBox(p, [&](auto& copy) { return runInStream(copy, on(stream)); }))
RUNTIME_SYNC(cudaMemcpy3DPeer, (const cudaMemcpy3DPeerParms* p),
             copyPeerBox(p, [&](auto& copy) { return run(copy, on); }))
RUNTIME_STREAM(cudaMemcpy3DPeerAsync, (const cudaMemcpy3DPeerParms* p, cudaStream_t stream),
               copyPeerBox(p, [&](auto& copy) { return runInStream(copy, on(stream)); }))
