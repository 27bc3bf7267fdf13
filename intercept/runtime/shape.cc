#include "intercept/runtime/shape.h"

#include "intercept/runtime/answer.h"
#include "intercept/runtime/array-format.h"
#include "intercept/runtime/convert.h"

namespace vgpu::runtime {
namespace {

struct MemoryTypes {
  CUmemorytype to, from;
};

/// The memory types of both sides by direction; `known` is false for a number that is no direction.
MemoryTypes typesOf(cudaMemcpyKind kind, bool& known) {
  known = true;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST};
    case cudaMemcpyHostToDevice:
      return {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
    case cudaMemcpyDeviceToHost:
      return {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};
    case cudaMemcpyDeviceToDevice:
      return {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE};
    case cudaMemcpyDefault:
      return {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
  }
  known = false;
  return {};
}

cudaMemcpyKind kindOf(CUmemorytype to, CUmemorytype from) {
  if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  bool toHost = to == CU_MEMORYTYPE_HOST, fromHost = from == CU_MEMORYTYPE_HOST;
  if (toHost) return fromHost ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
  return fromHost ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

bool fits(const Side& side, const Box& box) {
  return side.array != nullptr || side.pitch >= box.width || (box.height <= 1 && box.depth <= 1);
}

/// One side of cudaMemcpy3D: either an array or memory, not both.
cudaError_t readSide(cudaArray_t array, const cudaPos& at, const cudaPitchedPtr& memory, size_t element, Side& side) {
  if ((array != nullptr) == (memory.ptr != nullptr)) return cudaErrorInvalidValue;
  side = {memory.ptr, handle<CUarray>(array), memory.pitch, memory.ysize, at.x, at.y, at.z};
  const bool wraps = array != nullptr && __builtin_mul_overflow(side.x, element, &side.x);
  return wraps ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace

cudaError_t describeCopy(const Side& to, const Side& from, const Box& box, cudaMemcpyKind kind, CUDA_MEMCPY3D& copy) {
  bool known;
  MemoryTypes types = typesOf(kind, known);
  if (!fits(to, box) || !fits(from, box)) return cudaErrorInvalidPitchValue;
  if (!known) return cudaErrorInvalidMemcpyDirection;
  copy = {};
  copy.srcMemoryType = from.array != nullptr ? CU_MEMORYTYPE_ARRAY : types.from;
  copy.srcHost = copy.srcMemoryType == CU_MEMORYTYPE_HOST ? from.memory : nullptr;
  copy.srcDevice = copy.srcMemoryType == CU_MEMORYTYPE_HOST ? 0 : toDevice(from.memory);
  copy.srcArray = from.array;
  copy.srcPitch = from.pitch, copy.srcHeight = from.height;
  copy.srcXInBytes = from.x, copy.srcY = from.y, copy.srcZ = from.z;
  copy.dstMemoryType = to.array != nullptr ? CU_MEMORYTYPE_ARRAY : types.to;
  copy.dstHost = copy.dstMemoryType == CU_MEMORYTYPE_HOST ? to.memory : nullptr;
  copy.dstDevice = copy.dstMemoryType == CU_MEMORYTYPE_HOST ? 0 : toDevice(to.memory);
  copy.dstArray = to.array;
  copy.dstPitch = to.pitch, copy.dstHeight = to.height;
  copy.dstXInBytes = to.x, copy.dstY = to.y, copy.dstZ = to.z;
  copy.WidthInBytes = box.width, copy.Height = box.height, copy.Depth = box.depth;
  return cudaSuccess;
}

cudaError_t describeCopy(const cudaMemcpy3DParms* parameters, CUDA_MEMCPY3D& copy) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  const cudaMemcpy3DParms& p = *parameters;
  copy = {};
  if (p.extent.width == 0 || p.extent.height == 0 || p.extent.depth == 0) return cudaSuccess;
  if (unsigned{p.kind} > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  size_t element = 1;
  cudaArray_t array = p.srcArray != nullptr ? p.srcArray : p.dstArray;
  if (array != nullptr)
    if (CUresult result = elementSize(handle<CUarray>(array), element); result != CUDA_SUCCESS) return answer(result);
  Side to, from;
  if (cudaError_t error = readSide(p.dstArray, p.dstPos, p.dstPtr, element, to); error != cudaSuccess) return error;
  if (cudaError_t error = readSide(p.srcArray, p.srcPos, p.srcPtr, element, from); error != cudaSuccess) return error;
  size_t width, other = element;
  if (p.srcArray != nullptr && p.dstArray != nullptr)
    if (CUresult result = elementSize(handle<CUarray>(p.dstArray), other); result != CUDA_SUCCESS) return answer(result);
  if (other != element) return cudaErrorInvalidValue;
  if (__builtin_mul_overflow(p.extent.width, element, &width)) return cudaErrorInvalidValue;
  return describeCopy(to, from, {width, p.extent.height, p.extent.depth}, p.kind, copy);
}

cudaMemcpy3DParms parametersOf(const CUDA_MEMCPY3D& copy) {
  size_t element = 1;
  CUarray array = copy.srcArray != nullptr ? copy.srcArray : copy.dstArray;
  if (array != nullptr && elementSize(array, element) != CUDA_SUCCESS) element = 1;
  auto memory = [&](CUmemorytype type, const void* host, CUdeviceptr device, size_t pitch, size_t height) {
    void* place = type == CU_MEMORYTYPE_HOST ? const_cast<void*>(host) : toPointer(device);
    return cudaPitchedPtr{place, pitch, 0, height};  // the driver keeps no width
  };
  cudaMemcpy3DParms p = {};
  size_t fromElement = copy.srcArray != nullptr ? element : 1, toElement = copy.dstArray != nullptr ? element : 1;
  p.srcArray = handle<cudaArray_t>(copy.srcArray);
  p.srcPos = {copy.srcXInBytes / fromElement, copy.srcY, copy.srcZ};
  if (p.srcArray == nullptr)
    p.srcPtr = memory(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcPitch, copy.srcHeight);
  p.dstArray = handle<cudaArray_t>(copy.dstArray);
  p.dstPos = {copy.dstXInBytes / toElement, copy.dstY, copy.dstZ};
  if (p.dstArray == nullptr)
    p.dstPtr = memory(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstPitch, copy.dstHeight);
  p.extent = {copy.WidthInBytes / element, copy.Height, copy.Depth};
  p.kind = kindOf(copy.dstMemoryType, copy.srcMemoryType);
  return p;
}

CUresult elementSize(CUarray array, size_t& bytes) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  CUresult result = cuArray3DGetDescriptor(&descriptor, array);
  if (result == CUDA_SUCCESS) bytes = bytesOf({descriptor.Format, descriptor.NumChannels});
  return result;
}

}  // namespace vgpu::runtime
