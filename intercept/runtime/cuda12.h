// Structures of CUDA 12 whose layout CUDA 13 changed, as in <driver_types.h> of 12.9. Other structures only grew at their end: the first
// bytes are the structure of 12.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

namespace vgpu::runtime::cuda12 {

constexpr int version = 12090;

// The size in 12 of a structure that has grown in 13.
template <class T>
constexpr size_t oldBytes = 0;
template <>
inline constexpr size_t oldBytes<cudaPointerAttributes> = 24;
template <>
inline constexpr size_t oldBytes<cudaResourceDesc> = 64;
template <>
inline constexpr size_t oldBytes<cudaResourceViewDesc> = 48;

/// A structure of 13 made from the caller's structure of 12; empty if the caller's pointer is null.
template <class T>
class Grown {
  static_assert(oldBytes<T> != 0 && oldBytes<T> < sizeof(T));

 public:
  explicit Grown(const T* caller) : isThere(caller != nullptr) {
    if (isThere) std::memcpy(static_cast<void*>(&value), caller, oldBytes<T>);
  }
  const T* in() const { return isThere ? &value : nullptr; }
  T* out() { return isThere ? &value : nullptr; }
  /// Copies the members that 12 has to the caller's structure, if the call succeeded.
  cudaError_t give(cudaError_t result, T* caller) const {
    if (result == cudaSuccess && isThere) std::memcpy(static_cast<void*>(caller), &value, oldBytes<T>);
    return result;
  }

 private:
  bool isThere;
  T value{};
};

struct DeviceProperties {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  int clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap;
  int multiProcessorCount;
  int kernelExecTimeoutEnabled;
  int integrated, canMapHostMemory;
  int computeMode;
  int maxTexture1D, maxTexture1DMipmap;
  int maxTexture1DLinear;
  int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3];
  int maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
  int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3];
  int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing;
  int memoryClockRate;
  int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
  int globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio;
  int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  int cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported;
  int memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
  int reserved[63];
};
static_assert(sizeof(DeviceProperties) == 1032);

// cudaLaunchParams of 12.
struct LaunchParams {
  const void* function;
  dim3 grid, block;
  void** arguments;
  size_t sharedBytes;
  cudaStream_t stream;
};
static_assert(sizeof(LaunchParams) == 56);

}  // namespace vgpu::runtime::cuda12
