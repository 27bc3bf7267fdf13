// Device runtime functions for copies, fills, and memory of the device's heap.
#include "stub/emulator/ptx/run/device-call.h"

namespace vgpu::emulator {
namespace {

template <class Operation>
DeviceAnswer enqueue(DeviceCall& call, const Operation& operation, uint64_t stream) {
  const std::optional<Order> order = orderOf(call, stream);
  if (!order) return cudaErrorInvalidResourceHandle;
  if (operation.extent.empty()) return cudaSuccess;
  return call.launches().add(operation, *order, call.pendingLimit()) ? cudaSuccess : cudaErrorLaunchPendingCountExceeded;
}

// CUDA Programming Guide: only copies from device to device. Every address of a kernel counts as the device's.
bool isPossible(int kind) { return kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault; }

// cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
DeviceAnswer copyLine(DeviceCall& call) {
  if (!isPossible(call.number(3))) return cudaErrorInvalidMemcpyDirection;
  return enqueue(call, DeviceCopy{{call.argument(0)}, {call.argument(1)}, {call.argument(2)}}, call.argument(4));
}

// cudaError_t cudaMemcpy2DAsync(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height,
//                               cudaMemcpyKind kind, cudaStream_t stream)
DeviceAnswer copyImage(DeviceCall& call) {
  const BoxPlace to{call.argument(0), call.argument(1)}, from{call.argument(2), call.argument(3)};
  const BoxExtent extent{call.argument(4), call.argument(5)};
  if (!isPossible(call.number(6))) return cudaErrorInvalidMemcpyDirection;
  if (extent.width > to.rowBytes || extent.width > from.rowBytes) return cudaErrorInvalidPitchValue;
  return enqueue(call, DeviceCopy{to, from, extent}, call.argument(7));
}

BoxPlace placeOf(uint64_t address, uint64_t pitch, uint64_t rows, uint64_t x = 0, uint64_t y = 0, uint64_t z = 0) {
  return {address + z * pitch * rows + y * pitch + x, pitch, pitch * rows};
}
BoxPlace placeOf(const cudaPitchedPtr& memory, const cudaPos& at) {
  uint64_t address;
  static_assert(sizeof address == sizeof memory.ptr);
  std::memcpy(&address, &memory.ptr, sizeof address);
  return placeOf(address, memory.pitch, memory.ysize, at.x, at.y, at.z);
}

// cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream)
DeviceAnswer copyVolume(DeviceCall& call) {
  cudaMemcpy3DParms copy;
  if (!call.load(call.argument(0), copy)) return std::nullopt;
  if (copy.srcArray || copy.dstArray) return cudaErrorInvalidValue;
  if (!isPossible(copy.kind)) return cudaErrorInvalidMemcpyDirection;
  const BoxExtent extent{copy.extent.width, copy.extent.height, copy.extent.depth};
  if (extent.width > copy.dstPtr.pitch || extent.width > copy.srcPtr.pitch) return cudaErrorInvalidPitchValue;
  return enqueue(call, DeviceCopy{placeOf(copy.dstPtr, copy.dstPos), placeOf(copy.srcPtr, copy.srcPos), extent},
                 call.argument(1));
}

// cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream)
DeviceAnswer fillLine(DeviceCall& call) {
  return enqueue(call, DeviceFill{{call.argument(0)}, {call.argument(2)}, static_cast<uint8_t>(call.argument(1))},
                 call.argument(3));
}

// cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
DeviceAnswer fillImage(DeviceCall& call) {
  const BoxPlace to{call.argument(0), call.argument(1)};
  const BoxExtent extent{call.argument(3), call.argument(4)};
  if (extent.width > to.rowBytes) return cudaErrorInvalidValue;
  return enqueue(call, DeviceFill{to, extent, static_cast<uint8_t>(call.argument(2))}, call.argument(5));
}

// cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream): the structures' fields have 8 bytes
DeviceAnswer fillVolume(DeviceCall& call) {
  const BoxPlace to = placeOf(call.argument(0), call.argument(0, 2), call.argument(0, 6));
  const BoxExtent extent{call.argument(2), call.argument(2, 2), call.argument(2, 4)};
  if (extent.width > to.rowBytes) return cudaErrorInvalidValue;
  return enqueue(call, DeviceFill{to, extent, static_cast<uint8_t>(call.argument(1))}, call.argument(3));
}

// cudaError_t cudaMalloc(void** memory, size_t bytes), from the same heap as malloc()
DeviceAnswer allocateMemory(DeviceCall& call) {
  if (call.argument(1) == 0) return cudaErrorInvalidValue;
  const uint64_t address = allocateFromHeap(call.threads(), call.argument(1));
  if (address == 0) return cudaErrorMemoryAllocation;
  if (!call.store(call.argument(0), address)) return std::nullopt;
  return cudaSuccess;
}

// cudaError_t cudaFree(void* memory)
DeviceAnswer freeMemory(DeviceCall& call) {
  const uint64_t address = call.argument(0);
  return address == 0 || releaseToHeap(call.threads(), address) ? cudaSuccess : cudaErrorInvalidDevicePointer;
}

constexpr BuiltinRow memoryRows[] = {
    {"__cudaCDP2MemcpyAsync", 5, 1, answerError<copyLine>},     {"__cudaCDP2MemcpyAsync_ptsz", 5, 1, answerError<copyLine>},
    {"__cudaCDP2Memcpy2DAsync", 8, 1, answerError<copyImage>},  {"__cudaCDP2Memcpy2DAsync_ptsz", 8, 1, answerError<copyImage>},
    {"__cudaCDP2Memcpy3DAsync", 2, 1, answerError<copyVolume>}, {"__cudaCDP2Memcpy3DAsync_ptsz", 2, 1, answerError<copyVolume>},
    {"__cudaCDP2MemsetAsync", 4, 1, answerError<fillLine>},     {"__cudaCDP2MemsetAsync_ptsz", 4, 1, answerError<fillLine>},
    {"__cudaCDP2Memset2DAsync", 6, 1, answerError<fillImage>},  {"__cudaCDP2Memset2DAsync_ptsz", 6, 1, answerError<fillImage>},
    {"__cudaCDP2Memset3DAsync", 4, 1, answerError<fillVolume>}, {"__cudaCDP2Memset3DAsync_ptsz", 4, 1, answerError<fillVolume>},
    {"__cudaCDP2Malloc", 2, 1, answerError<allocateMemory>},    {"__cudaCDP2Free", 1, 1, answerError<freeMemory>},
};

}  // namespace

std::span<const BuiltinRow> deviceMemoryBuiltins() { return memoryRows; }

}  // namespace vgpu::emulator
