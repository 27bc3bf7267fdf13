// Attributes that a session reports whatever its GPU supports: an attribute that reports support implies that its calls work. A row is
// removed once its feature is implemented.
#include "intercept/session/device-info.h"

#include <cstdio>

namespace vgpu::client {

namespace {

struct SessionAnswer {
  CUdevice_attribute attribute;
  int value;
};

#define ANSWER(name, value) {CU_DEVICE_ATTRIBUTE_##name, value}
constexpr SessionAnswer answers[] = {
    // The program's process has no GPU: kernels cannot access memory that it allocates itself, and memory that both access is host memory
    // across a link, without a processor's coherence.
    ANSWER(PAGEABLE_MEMORY_ACCESS, 0),
    ANSWER(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0),
    ANSWER(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0),
    ANSWER(HOST_NATIVE_ATOMIC_SUPPORTED, 0),
    ANSWER(ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, 0),

    // Features that need other handles of virtual memory management.
    ANSWER(HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, 0),
    ANSWER(HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, 0),
    ANSWER(HANDLE_TYPE_FABRIC_SUPPORTED, 0),
    ANSWER(MULTICAST_SUPPORTED, 0),

    // A session shares only with other sessions of its user on its node.
    ANSWER(MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
    // The client implements pools of pinned memory, whatever the GPU's driver supports. The program's host is one NUMA node.
    ANSWER(HOST_MEMORY_POOLS_SUPPORTED, 1),
    ANSWER(HOST_NUMA_MEMORY_POOLS_SUPPORTED, 1),
    ANSWER(HOST_NUMA_ID, 0),
    ANSWER(HOST_NUMA_MULTINODE_IPC_SUPPORTED, 0),
    ANSWER(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 0),
    ANSWER(D3D12_CIG_SUPPORTED, 0),
    ANSWER(VULKAN_CIG_SUPPORTED, 0),

    // The program's GPU addresses mean nothing to a network card of its host.
    ANSWER(GPU_DIRECT_RDMA_SUPPORTED, 0),
    ANSWER(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0),
    ANSWER(GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0),
    ANSWER(GPU_DIRECT_RDMA_WRITES_ORDERING, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE),
    ANSWER(CAN_FLUSH_REMOTE_WRITES, 0),
    ANSWER(DMA_BUF_SUPPORTED, 0),
    ANSWER(HOST_ALLOC_DMA_BUF_SUPPORTED, 0),

    // Not supported in a session: kernels of several devices that wait for each other's grids, function pointers of libraries,
    // decompression.
    ANSWER(COOPERATIVE_MULTI_DEVICE_LAUNCH, 0),
    ANSWER(UNIFIED_FUNCTION_POINTERS, 0),
    ANSWER(MEM_DECOMPRESS_ALGORITHM_MASK, 0),
    ANSWER(MEM_DECOMPRESS_MAXIMUM_LENGTH, 0),
};
#undef ANSWER

}  // namespace

std::optional<BusPlace> BusPlace::of(const char* text) {
  BusPlace place;
  auto& [domain, bus, device, function] = place;
  int end = 0;
  if (std::sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &device, &function, &end) != 4) {
    function = 0;
    if (std::sscanf(text, "%x:%x:%x%n", &domain, &bus, &device, &end) != 3) {
      domain = 0;
      if (std::sscanf(text, "%x:%x.%x%n", &bus, &device, &function, &end) != 3) return std::nullopt;
    }
  }
  return text[end] == 0 ? std::optional(place) : std::nullopt;
}

void DeviceInfo::limitToSession(bool mapsHost) {
  auto set = [&](CUdevice_attribute attribute, int value) {
    if (auto index = static_cast<size_t>(attribute); index < attributes.size()) attributes[index] = value;
  };
  for (auto& answer : answers) set(answer.attribute, answer.value);
  // Physical host memory is pinned memory, whatever the GPU's driver supports (VirtualMemory).
  set(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, mapsHost);
  set(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, mapsHost);
}

bool areAllPeers(const std::vector<DeviceInfo>& devices) {
  for (unsigned from = 0; from < devices.size(); ++from)
    for (unsigned to = 0; to < devices.size(); ++to)
      if (from != to && !devices[from].canAccess(to)) return false;
  return true;
}

}  // namespace vgpu::client
