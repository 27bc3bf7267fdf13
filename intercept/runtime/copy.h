// Copies of linear memory: blocking or in a stream, in a given direction or by unified addressing.
#pragma once
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {

/// Unified addressing finds the devices from the addresses; the device numbers that a program passes are only checked.
inline cudaError_t checkDevices(int to, int from) {
  int count = 0;
  if (CUresult result = cuDeviceGetCount(&count); result != CUDA_SUCCESS) return answer(result);
  bool known = to >= 0 && to < count && from >= 0 && from < count;
  return known ? cudaSuccess : cudaErrorInvalidDevice;
}

/// Whether a copy with a variable or array may have direction `kind`. `fromOrToHost`: the copy's direction if its other end is host memory.
inline bool reachesDevice(cudaMemcpyKind kind, cudaMemcpyKind fromOrToHost) {
  return kind == fromOrToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

/// A number that is no direction is an error, unless there is nothing to copy.
inline cudaError_t noDirection(size_t bytes) { return bytes == 0 ? cudaSuccess : cudaErrorInvalidMemcpyDirection; }

/// Posts the copy to a stream, in the given direction.
inline cudaError_t copyInStream(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return answer(cuMemcpyHtoDAsync(toDevice(to), from, bytes, stream));
    case cudaMemcpyDeviceToHost:
      return answer(cuMemcpyDtoHAsync(to, toDevice(from), bytes, stream));
    case cudaMemcpyDeviceToDevice:
      return answer(cuMemcpyDtoDAsync(toDevice(to), toDevice(from), bytes, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return answer(cuMemcpyAsync(toDevice(to), toDevice(from), bytes, stream));
  }
  return noDirection(bytes);
}

/// Blocking, ordered after the work of the legacy default stream.
inline cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, LegacyDefaultStream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return answer(cuMemcpyHtoD(toDevice(to), from, bytes));
    case cudaMemcpyDeviceToHost:
      return answer(cuMemcpyDtoH(to, toDevice(from), bytes));
    case cudaMemcpyDeviceToDevice:
      return answer(cuMemcpyDtoD(toDevice(to), toDevice(from), bytes));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return answer(cuMemcpy(toDevice(to), toDevice(from), bytes));
  }
  return noDirection(bytes);
}

/// Blocking, ordered after the work of the thread's own default stream.
inline cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, PerThreadDefaultStream) {
  cudaError_t error = copyInStream(to, from, bytes, kind, CU_STREAM_PER_THREAD);
  return error != cudaSuccess ? error : answer(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

}  // namespace vgpu::runtime
