// Device attributes agree with calls: for each attribute that reports a feature, the call that uses the feature is made, and if it returns
// "not supported" the attribute must report no support.
#include <cstring>

#include "driver-entry.h"
#include "in-session.h"

namespace {

int attribute(CUdevice_attribute which) {
  int value = -1;
  CALL(cuDeviceGetAttribute, &value, which, 0);
  return value;
}

template <typename Try>
bool keepsItsWord(const char* name, CUdevice_attribute which, Try attempt) {
  const int promised = attribute(which);
  if (promised <= 0) return true;
  const CUresult result = attempt();
  if (result == CUDA_SUCCESS) return true;
  std::fprintf(stderr, "%s is %d, and the call that it promises gives error %d\n", name, promised, result);
  return false;
}
#define KEEPS_WORD(name, ...) keepsItsWord(#name, CU_DEVICE_ATTRIBUTE_##name, [&]() -> CUresult { return __VA_ARGS__; })

// Calls an entry that the driver may lack.
template <typename Entry, typename... Arguments>
CUresult tryEntry(const char* name, Arguments... arguments) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 13000, cudaEnableDefault, &found));
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<Entry>(entry)(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
}
#define TRY(name, ...) tryEntry<decltype(&name)>(#name, __VA_ARGS__)

CUresult createPool(CUmemAllocationHandleType type) {
  CUmemoryPool pool;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = type;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return TRY(cuMemPoolCreate, &pool, &properties);
}

CUresult createArray(unsigned flags) {
  CUarray array;
  CUDA_ARRAY3D_DESCRIPTOR shape{256, 256, 0, CU_AD_FORMAT_FLOAT, 1, flags};
  return TRY(cuArray3DCreate, &array, &shape);
}

CUresult prefetch() {
  void* managed = nullptr;
  CHECK(cudaMallocManaged(&managed, 1 << 20));
  const cudaMemLocation there{cudaMemLocationTypeDevice, 0};
  const cudaError_t result = cudaMemPrefetchAsync(managed, 1 << 20, there, 0, nullptr);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(managed));
  return static_cast<CUresult>(result);
}

__global__ void nothing() {}

CUresult launchClusters() {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = 2;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = 2;
  config.attrs = &cluster;
  config.numAttrs = 1;
  const cudaError_t result = cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(nothing), nullptr);
  return static_cast<CUresult>(result);
}

bool featuresWork() {
  CUdeviceptr address = 0, word = 0;
  CUevent event;
  CUmemGenericAllocationHandle memory;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUaccessPolicyWindow window{};
  CUstreamAttrValue policy{};
  CALL(cuMemAlloc, &word, 4096);
  window.base_ptr = reinterpret_cast<void*>(word);
  window.num_bytes = 4096;
  policy.accessPolicyWindow = window;
  int dmaBuf = -1;
  bool ok = KEEPS_WORD(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, TRY(cuMemAddressReserve, &address, 64ul << 20, 0, 0, 0)) &
            KEEPS_WORD(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, TRY(cuMemCreate, &memory, 64ul << 20, &properties, 0)) &
            KEEPS_WORD(MEMORY_POOLS_SUPPORTED, createPool(CU_MEM_HANDLE_TYPE_NONE)) &
            KEEPS_WORD(MEMPOOL_SUPPORTED_HANDLE_TYPES, createPool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) &
            KEEPS_WORD(IPC_EVENT_SUPPORTED, TRY(cuEventCreate, &event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)) &
            KEEPS_WORD(SPARSE_CUDA_ARRAY_SUPPORTED, createArray(CUDA_ARRAY3D_SPARSE)) &
            KEEPS_WORD(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, createArray(CUDA_ARRAY3D_DEFERRED_MAPPING)) &
            KEEPS_WORD(CAN_USE_64_BIT_STREAM_MEM_OPS, TRY(cuStreamWriteValue64, nullptr, word, 1, 0)) &
            KEEPS_WORD(CONCURRENT_MANAGED_ACCESS, prefetch()) & KEEPS_WORD(CLUSTER_LAUNCH, launchClusters()) &
            KEEPS_WORD(MAX_ACCESS_POLICY_WINDOW_SIZE,
                       TRY(cuStreamSetAttribute, nullptr, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &policy)) &
            KEEPS_WORD(DMA_BUF_SUPPORTED, TRY(cuMemGetHandleForAddressRange, &dmaBuf, word, 4096,
                                              CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  CHECK(cudaDeviceSynchronize());
  CALL(cuMemFree, word);
  return ok;
}

// A session does not support multicast objects, and says so. Natively the test would use resources of the switch that all GPUs of a host
// share.
bool hasNoMulticast() {
  if (!inSession) return true;
  CUmulticastObjectProp properties{};
  properties.numDevices = 1;
  properties.size = 32 << 20;
  CUmemGenericAllocationHandle object = 0;
  size_t granularity = 0;
  constexpr CUresult refused = CUDA_ERROR_NOT_SUPPORTED;
  return EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) == 0) & EXPECT(DRIVER(cuMulticastCreate)(&object, &properties) == refused) &
         EXPECT(DRIVER(cuMulticastGetGranularity)(&granularity, &properties, CU_MULTICAST_GRANULARITY_MINIMUM) == refused) &
         EXPECT(DRIVER(cuMulticastAddDevice)(object, 0) == refused) &
         EXPECT(DRIVER(cuMulticastBindMem)(object, 0, object, 0, 4096, 0) == refused) &
         EXPECT(DRIVER(cuMulticastBindAddr)(object, 0, 0, 4096, 0) == refused) &
         EXPECT(DRIVER(cuMulticastUnbind)(object, 0, 0, 4096) == refused);
}

// The peer attributes agree with the result of enabling peer access.
bool peersKeepTheirWord() {
  int devices = 0, can = 0, supported = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return true;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(cudaDeviceGetP2PAttribute(&supported, cudaDevP2PAttrAccessSupported, 0, 1));
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(1, 0);
  bool ok = EXPECT(can == supported) & EXPECT_ERROR(enabled, can ? cudaSuccess : cudaErrorPeerAccessUnsupported) &
            EXPECT_ERROR(cudaDeviceCanAccessPeer(&can, 0, devices), cudaErrorInvalidDevice) &
            EXPECT_ERROR(cudaDeviceGetP2PAttribute(&supported, cudaDevP2PAttrAccessSupported, 1, 1), cudaErrorInvalidDevice);
  cudaGetLastError();
  return ok;
}

// The structure of all properties agrees with the attributes.
bool propertiesAgree() {
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  return EXPECT(p.concurrentManagedAccess == attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)) &
         EXPECT(p.clusterLaunch == attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)) &
         EXPECT(p.pageableMemoryAccess == attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)) &
         EXPECT(p.persistingL2CacheMaxSize == attribute(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE)) &
         EXPECT(p.cooperativeLaunch == attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH));
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  return verdict("capabilities", featuresWork() & hasNoMulticast() & peersKeepTheirWord() & propertiesAgree());
}
