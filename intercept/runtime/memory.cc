// Device, pinned and managed memory.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

constexpr unsigned pitchElement = 4;  // bytes; any the driver accepts gives the same pitch

/// For 0 bytes the runtime, unlike the driver, returns a null pointer.
CUresult allocate(void** memory, size_t bytes) {
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return *memory = nullptr, CUDA_SUCCESS;
  return cuMemAlloc(addressOut(memory), bytes);
}

CUresult allocateHost(void** memory, size_t bytes, unsigned flags) {
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return *memory = nullptr, CUDA_SUCCESS;
  return cuMemHostAlloc(memory, bytes, flags);
}

CUresult allocateManaged(void** memory, size_t bytes, unsigned flags) {
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return *memory = nullptr, CUDA_SUCCESS;
  return cuMemAllocManaged(addressOut(memory), bytes, flags);
}

CUresult allocatePitched(void** memory, size_t* pitch, size_t width, size_t rows) {
  if (memory == nullptr || pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (width == 0 || rows == 0) return *memory = nullptr, *pitch = 0, CUDA_SUCCESS;
  return cuMemAllocPitch(addressOut(memory), pitch, width, rows, pitchElement);
}

CUresult allocate3D(cudaPitchedPtr* memory, cudaExtent extent) {
  size_t rows;
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = allocatePitched(&memory->ptr, &memory->pitch, extent.width, rows);
  if (result == CUDA_SUCCESS) memory->xsize = extent.width, memory->ysize = extent.height;
  return result;
}

CUresult freeHost(void* memory) { return memory == nullptr ? CUDA_SUCCESS : cuMemFreeHost(memory); }

struct PointerFacts {
  unsigned type = 0;
  unsigned managed = 0;
  int device = -1;
  CUdeviceptr onDevice = 0;
  void* onHost = nullptr;
};

CUresult readFacts(const void* memory, PointerFacts& facts) {
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* answers[] = {&facts.type, &facts.managed, &facts.device, &facts.onDevice, &facts.onHost};
  return cuPointerGetAttributes(std::size(asked), asked, answers, toDevice(memory));
}

/// A pointer that CUDA does not know is no error: it is ordinary host memory, or unmapped.
CUresult describe(cudaPointerAttributes* attributes, const void* memory) {
  if (attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  PointerFacts facts;
  if (CUresult result = readFacts(memory, facts); result != CUDA_SUCCESS) return result;
  *attributes = {};
  if (facts.type == 0 && facts.managed == 0) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -2;  // cudaInvalidDeviceId, as CUDA returns
    attributes->hostPointer = const_cast<void*>(memory);
    return CUDA_SUCCESS;
  }
  attributes->type = facts.managed != 0                 ? cudaMemoryTypeManaged
                     : facts.type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                        : cudaMemoryTypeDevice;
  attributes->device = facts.device;
  attributes->devicePointer = toPointer(facts.onDevice);
  attributes->hostPointer = facts.onHost;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaMalloc, (void** memory, size_t bytes), allocate(memory, bytes))
RUNTIME(cudaMallocPitch, (void** memory, size_t* pitch, size_t width, size_t height),
        allocatePitched(memory, pitch, width, height))
RUNTIME(cudaMalloc3D, (cudaPitchedPtr * memory, cudaExtent extent), allocate3D(memory, extent))
RUNTIME(cudaMallocManaged, (void** memory, size_t bytes, unsigned flags), allocateManaged(memory, bytes, flags))
RUNTIME(cudaFree, (void* memory), cuMemFree(toDevice(memory)))

RUNTIME(cudaMallocHost, (void** memory, size_t bytes), allocateHost(memory, bytes, 0))
RUNTIME(cudaHostAlloc, (void** memory, size_t bytes, unsigned flags), allocateHost(memory, bytes, flags))
RUNTIME(cudaFreeHost, (void* memory), freeHost(memory))
RUNTIME(cudaHostRegister, (void* memory, size_t bytes, unsigned flags), cuMemHostRegister(memory, bytes, flags))
RUNTIME(cudaHostUnregister, (void* memory), cuMemHostUnregister(memory))
RUNTIME(cudaHostGetDevicePointer, (void** device, void* host, unsigned flags),
        cuMemHostGetDevicePointer(addressOut(device), host, flags))
RUNTIME(cudaHostGetFlags, (unsigned* flags, void* host), cuMemHostGetFlags(flags, host))

RUNTIME(cudaMemGetInfo, (size_t * available, size_t* total), cuMemGetInfo(available, total))
RUNTIME(cudaPointerGetAttributes, (cudaPointerAttributes * attributes, const void* memory),
        describe(attributes, memory))
