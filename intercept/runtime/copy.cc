// Copies of linear memory, and to and from the program's variables.
#include "intercept/runtime/copy.h"

#include "intercept/runtime/registry.h"

namespace vgpu::runtime {
namespace {

/// `fromOrToHost`: the copy's direction if its other end is host memory. Arguments are not checked if there is nothing to copy.
template <class Copy>
cudaError_t copyPart(const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind, cudaMemcpyKind fromOrToHost, Copy copy) {
  if (count == 0) return cudaSuccess;
  void* part;
  if (cudaError_t error = getPart(symbol, offset, count, part); error != cudaSuccess) return error;
  return reachesDevice(kind, fromOrToHost) ? copy(part) : cudaErrorInvalidMemcpyDirection;
}

template <class Copy>
cudaError_t copyTo(const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind, Copy copy) {
  return copyPart(symbol, count, offset, kind, cudaMemcpyHostToDevice, copy);
}

template <class Copy>
cudaError_t copyFrom(const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind, Copy copy) {
  return copyPart(symbol, count, offset, kind, cudaMemcpyDeviceToHost, copy);
}

cudaError_t symbolAddress(void** place, const void* symbol) {
  if (place == nullptr) return cudaErrorInvalidValue;
  size_t size;
  return getAddress(symbol, *addressOut(place), size);
}

cudaError_t symbolSize(size_t* size, const void* symbol) {
  if (size == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address;
  return getAddress(symbol, address, *size);
}

cudaError_t copyPeer(void* to, int toDevice_, const void* from, int fromDevice, size_t bytes) {
  cudaError_t error = bytes == 0 ? cudaSuccess : checkDevices(toDevice_, fromDevice);
  return error != cudaSuccess ? error : copy(to, from, bytes, cudaMemcpyDefault, LegacyDefaultStream());
}

cudaError_t copyPeerInStream(void* to, int toDevice_, const void* from, int fromDevice, size_t bytes, CUstream stream) {
  cudaError_t error = bytes == 0 ? cudaSuccess : checkDevices(toDevice_, fromDevice);
  return error != cudaSuccess ? error : copyInStream(to, from, bytes, cudaMemcpyDefault, stream);
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME_SYNC(cudaMemcpy, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind),
             copy(to, from, bytes, kind, on))
RUNTIME_STREAM(cudaMemcpyAsync, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
               copyInStream(to, from, bytes, kind, on(stream)))
RUNTIME(cudaMemcpyPeer, (void* to, int toDevice, const void* from, int fromDevice, size_t bytes),
        copyPeer(to, toDevice, from, fromDevice, bytes))
RUNTIME(cudaMemcpyPeerAsync,
        (void* to, int toDevice, const void* from, int fromDevice, size_t bytes, cudaStream_t stream),
        copyPeerInStream(to, toDevice, from, fromDevice, bytes, stream))

RUNTIME_SYNC(cudaMemcpyToSymbol,
             (const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind),
             copyTo(symbol, count, offset, kind, [&](void* part) { return copy(part, from, count, kind, on); }))
RUNTIME_SYNC(cudaMemcpyFromSymbol, (void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind),
             copyFrom(symbol, count, offset, kind, [&](void* part) { return copy(to, part, count, kind, on); }))
RUNTIME_STREAM(cudaMemcpyToSymbolAsync,
               (const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind,
                cudaStream_t stream),
               copyTo(symbol, count, offset, kind,
                      [&](void* part) { return copyInStream(part, from, count, kind, on(stream)); }))
RUNTIME_STREAM(cudaMemcpyFromSymbolAsync,
               (void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
               copyFrom(symbol, count, offset, kind,
                        [&](void* part) { return copyInStream(to, part, count, kind, on(stream)); }))
RUNTIME(cudaGetSymbolAddress, (void** place, const void* symbol), symbolAddress(place, symbol))
RUNTIME(cudaGetSymbolSize, (size_t * size, const void* symbol), symbolSize(size, symbol))
