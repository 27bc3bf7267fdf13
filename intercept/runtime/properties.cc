#include "intercept/runtime/properties.h"

#include <cuda.h>

#include <cstring>

#include "intercept/runtime/answer.h"

namespace vgpu::runtime {
namespace {

CUresult readAttribute(CUdevice device, CUdevice_attribute attribute, int& value) {
  CUresult result = cuDeviceGetAttribute(&value, attribute, device);
  // A driver that is older than the attribute: the device lacks the feature.
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED) return value = 0, CUDA_SUCCESS;
  return result;
}

/// Attributes are int; the properties that they become are int, unsigned or size_t.
class Reader {
 public:
  explicit Reader(CUdevice device) : device_(device) {}

  template <class T>
  void read(CUdevice_attribute attribute, T& property) {
    int value = 0;
    if (result_ == CUDA_SUCCESS) result_ = readAttribute(device_, attribute, value);
    property = static_cast<T>(value);
  }
  CUresult result() const { return result_; }

 private:
  CUdevice device_;
  CUresult result_ = CUDA_SUCCESS;
};

CUresult readAttributes(CUdevice device, cudaDeviceProp& p) {
  Reader reader(device);
#define ROW(attribute, property) reader.read(CU_DEVICE_ATTRIBUTE_##attribute, p.property)
  ROW(MAX_SHARED_MEMORY_PER_BLOCK, sharedMemPerBlock);
  ROW(MAX_REGISTERS_PER_BLOCK, regsPerBlock);
  ROW(WARP_SIZE, warpSize);
  ROW(MAX_PITCH, memPitch);
  ROW(MAX_THREADS_PER_BLOCK, maxThreadsPerBlock);
  ROW(MAX_BLOCK_DIM_X, maxThreadsDim[0]);
  ROW(MAX_BLOCK_DIM_Y, maxThreadsDim[1]);
  ROW(MAX_BLOCK_DIM_Z, maxThreadsDim[2]);
  ROW(MAX_GRID_DIM_X, maxGridSize[0]);
  ROW(MAX_GRID_DIM_Y, maxGridSize[1]);
  ROW(MAX_GRID_DIM_Z, maxGridSize[2]);
  ROW(TOTAL_CONSTANT_MEMORY, totalConstMem);
  ROW(COMPUTE_CAPABILITY_MAJOR, major);
  ROW(COMPUTE_CAPABILITY_MINOR, minor);
  ROW(TEXTURE_ALIGNMENT, textureAlignment);
  ROW(TEXTURE_PITCH_ALIGNMENT, texturePitchAlignment);
  ROW(MULTIPROCESSOR_COUNT, multiProcessorCount);
  ROW(INTEGRATED, integrated);
  ROW(CAN_MAP_HOST_MEMORY, canMapHostMemory);
  ROW(MAXIMUM_TEXTURE1D_WIDTH, maxTexture1D);
  ROW(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, maxTexture1DMipmap);
  ROW(MAXIMUM_TEXTURE2D_WIDTH, maxTexture2D[0]);
  ROW(MAXIMUM_TEXTURE2D_HEIGHT, maxTexture2D[1]);
  ROW(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, maxTexture2DMipmap[0]);
  ROW(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, maxTexture2DMipmap[1]);
  ROW(MAXIMUM_TEXTURE2D_LINEAR_WIDTH, maxTexture2DLinear[0]);
  ROW(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, maxTexture2DLinear[1]);
  ROW(MAXIMUM_TEXTURE2D_LINEAR_PITCH, maxTexture2DLinear[2]);
  ROW(MAXIMUM_TEXTURE2D_GATHER_WIDTH, maxTexture2DGather[0]);
  ROW(MAXIMUM_TEXTURE2D_GATHER_HEIGHT, maxTexture2DGather[1]);
  ROW(MAXIMUM_TEXTURE3D_WIDTH, maxTexture3D[0]);
  ROW(MAXIMUM_TEXTURE3D_HEIGHT, maxTexture3D[1]);
  ROW(MAXIMUM_TEXTURE3D_DEPTH, maxTexture3D[2]);
  ROW(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, maxTexture3DAlt[0]);
  ROW(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, maxTexture3DAlt[1]);
  ROW(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, maxTexture3DAlt[2]);
  ROW(MAXIMUM_TEXTURECUBEMAP_WIDTH, maxTextureCubemap);
  ROW(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, maxTexture1DLayered[0]);
  ROW(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, maxTexture1DLayered[1]);
  ROW(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, maxTexture2DLayered[0]);
  ROW(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, maxTexture2DLayered[1]);
  ROW(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, maxTexture2DLayered[2]);
  ROW(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, maxTextureCubemapLayered[0]);
  ROW(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, maxTextureCubemapLayered[1]);
  ROW(MAXIMUM_SURFACE1D_WIDTH, maxSurface1D);
  ROW(MAXIMUM_SURFACE2D_WIDTH, maxSurface2D[0]);
  ROW(MAXIMUM_SURFACE2D_HEIGHT, maxSurface2D[1]);
  ROW(MAXIMUM_SURFACE3D_WIDTH, maxSurface3D[0]);
  ROW(MAXIMUM_SURFACE3D_HEIGHT, maxSurface3D[1]);
  ROW(MAXIMUM_SURFACE3D_DEPTH, maxSurface3D[2]);
  ROW(MAXIMUM_SURFACE1D_LAYERED_WIDTH, maxSurface1DLayered[0]);
  ROW(MAXIMUM_SURFACE1D_LAYERED_LAYERS, maxSurface1DLayered[1]);
  ROW(MAXIMUM_SURFACE2D_LAYERED_WIDTH, maxSurface2DLayered[0]);
  ROW(MAXIMUM_SURFACE2D_LAYERED_HEIGHT, maxSurface2DLayered[1]);
  ROW(MAXIMUM_SURFACE2D_LAYERED_LAYERS, maxSurface2DLayered[2]);
  ROW(MAXIMUM_SURFACECUBEMAP_WIDTH, maxSurfaceCubemap);
  ROW(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, maxSurfaceCubemapLayered[0]);
  ROW(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, maxSurfaceCubemapLayered[1]);
  ROW(SURFACE_ALIGNMENT, surfaceAlignment);
  ROW(CONCURRENT_KERNELS, concurrentKernels);
  ROW(ECC_ENABLED, ECCEnabled);
  ROW(PCI_BUS_ID, pciBusID);
  ROW(PCI_DEVICE_ID, pciDeviceID);
  ROW(PCI_DOMAIN_ID, pciDomainID);
  ROW(TCC_DRIVER, tccDriver);
  ROW(ASYNC_ENGINE_COUNT, asyncEngineCount);
  ROW(UNIFIED_ADDRESSING, unifiedAddressing);
  ROW(GLOBAL_MEMORY_BUS_WIDTH, memoryBusWidth);
  ROW(L2_CACHE_SIZE, l2CacheSize);
  ROW(MAX_PERSISTING_L2_CACHE_SIZE, persistingL2CacheMaxSize);
  ROW(MAX_THREADS_PER_MULTIPROCESSOR, maxThreadsPerMultiProcessor);
  ROW(STREAM_PRIORITIES_SUPPORTED, streamPrioritiesSupported);
  ROW(GLOBAL_L1_CACHE_SUPPORTED, globalL1CacheSupported);
  ROW(LOCAL_L1_CACHE_SUPPORTED, localL1CacheSupported);
  ROW(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, sharedMemPerMultiprocessor);
  ROW(MAX_REGISTERS_PER_MULTIPROCESSOR, regsPerMultiprocessor);
  ROW(MANAGED_MEMORY, managedMemory);
  ROW(MULTI_GPU_BOARD, isMultiGpuBoard);
  ROW(MULTI_GPU_BOARD_GROUP_ID, multiGpuBoardGroupID);
  ROW(HOST_NATIVE_ATOMIC_SUPPORTED, hostNativeAtomicSupported);
  ROW(PAGEABLE_MEMORY_ACCESS, pageableMemoryAccess);
  ROW(CONCURRENT_MANAGED_ACCESS, concurrentManagedAccess);
  ROW(COMPUTE_PREEMPTION_SUPPORTED, computePreemptionSupported);
  ROW(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, canUseHostPointerForRegisteredMem);
  ROW(COOPERATIVE_LAUNCH, cooperativeLaunch);
  ROW(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, sharedMemPerBlockOptin);
  ROW(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, pageableMemoryAccessUsesHostPageTables);
  ROW(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, directManagedMemAccessFromHost);
  ROW(MAX_BLOCKS_PER_MULTIPROCESSOR, maxBlocksPerMultiProcessor);
  ROW(MAX_ACCESS_POLICY_WINDOW_SIZE, accessPolicyMaxWindowSize);
  ROW(RESERVED_SHARED_MEMORY_PER_BLOCK, reservedSharedMemPerBlock);
  ROW(HOST_REGISTER_SUPPORTED, hostRegisterSupported);
  ROW(SPARSE_CUDA_ARRAY_SUPPORTED, sparseCudaArraySupported);
  ROW(READ_ONLY_HOST_REGISTER_SUPPORTED, hostRegisterReadOnlySupported);
  ROW(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, timelineSemaphoreInteropSupported);
  ROW(MEMORY_POOLS_SUPPORTED, memoryPoolsSupported);
  ROW(GPU_DIRECT_RDMA_SUPPORTED, gpuDirectRDMASupported);
  ROW(GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, gpuDirectRDMAFlushWritesOptions);
  ROW(GPU_DIRECT_RDMA_WRITES_ORDERING, gpuDirectRDMAWritesOrdering);
  ROW(MEMPOOL_SUPPORTED_HANDLE_TYPES, memoryPoolSupportedHandleTypes);
  ROW(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, deferredMappingCudaArraySupported);
  ROW(IPC_EVENT_SUPPORTED, ipcEventSupported);
  ROW(CLUSTER_LAUNCH, clusterLaunch);
  ROW(UNIFIED_FUNCTION_POINTERS, unifiedFunctionPointers);
  ROW(NUMA_CONFIG, deviceNumaConfig);
  ROW(NUMA_ID, deviceNumaId);
  ROW(MPS_ENABLED, mpsEnabled);
  ROW(HOST_NUMA_ID, hostNumaId);
  ROW(GPU_PCI_DEVICE_ID, gpuPciDeviceID);
  ROW(GPU_PCI_SUBSYSTEM_ID, gpuPciSubsystemID);
  ROW(HOST_NUMA_MULTINODE_IPC_SUPPORTED, hostNumaMultinodeIpcSupported);
#undef ROW
  return reader.result();
}

CUresult readAll(CUdevice device, cudaDeviceProp& p) {
  p = {};
  if (CUresult result = cuDeviceGetName(p.name, sizeof p.name, device); result != CUDA_SUCCESS) return result;
  CUuuid uuid;
  if (CUresult result = cuDeviceGetUuid(&uuid, device); result != CUDA_SUCCESS) return result;
  static_assert(sizeof uuid == sizeof p.uuid);
  memcpy(&p.uuid, &uuid, sizeof uuid);
  if (CUresult result = cuDeviceTotalMem(&p.totalGlobalMem, device); result != CUDA_SUCCESS) return result;
  return readAttributes(device, p);
}

/// How many of the wanted properties that are set the device meets.
int score(const cudaDeviceProp& wanted, const cudaDeviceProp& has) {
  int points = 0;
  if (wanted.name[0] != 0) points += strncmp(wanted.name, has.name, sizeof has.name) == 0;
  if (wanted.major > 0) points += has.major > wanted.major || (has.major == wanted.major && has.minor >= wanted.minor);
#define ROW(property) points += wanted.property != 0 && has.property >= wanted.property
  ROW(totalGlobalMem);
  ROW(sharedMemPerBlock);
  ROW(regsPerBlock);
  ROW(maxThreadsPerBlock);
  ROW(totalConstMem);
  ROW(multiProcessorCount);
  ROW(integrated);
  ROW(canMapHostMemory);
  ROW(concurrentKernels);
  ROW(ECCEnabled);
  ROW(managedMemory);
  ROW(cooperativeLaunch);
#undef ROW
  return points;
}

}  // namespace

cudaError_t readProperties(cudaDeviceProp* properties, int device) {
  CUdevice handle;
  if (properties == nullptr) return cudaErrorInvalidValue;
  if (CUresult result = cuDeviceGet(&handle, device); result != CUDA_SUCCESS) return answer(result);
  return answer(readAll(handle, *properties));
}

cudaError_t findBestDevice(int* device, const cudaDeviceProp* wanted) {
  if (device == nullptr || wanted == nullptr) return cudaErrorInvalidValue;
  int count = 0;
  if (CUresult result = cuDeviceGetCount(&count); result != CUDA_SUCCESS) return answer(result);
  int best = -1;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp has;
    if (cudaError_t error = readProperties(&has, ordinal); error != cudaSuccess) return error;
    int points = score(*wanted, has);
    if (points > best) best = points, *device = ordinal;
  }
  return best < 0 ? cudaErrorNoDevice : cudaSuccess;
}

}  // namespace vgpu::runtime
