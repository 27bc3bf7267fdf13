#include "stub/pool/memory-pool.h"

#include <fcntl.h>
#include <kj/debug.h>

#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

namespace {

// Whether [address, address + bytes) touches no entry of `map` (start -> bytes, by `size`).
template <typename Map, typename Size>
bool isFree(const Map& map, uint64_t address, uint64_t bytes, Size size) {
  auto next = map.lower_bound(address);
  if (next != map.end() && next->first < address + bytes) return false;
  if (next == map.begin()) return true;
  auto before = std::prev(next);
  return before->first + size(before->second) <= address;
}

// Whether the entries of `map` cover [address, address + bytes) without a gap.
template <typename Map, typename Size>
bool isCovered(const Map& map, uint64_t address, uint64_t bytes, Size size) {
  uint64_t end = address + bytes;
  if (end < address) return false;
  auto piece = map.upper_bound(address);
  if (piece == map.begin()) return false;
  for (--piece; piece != map.end() && piece->first <= address; ++piece) {
    address = piece->first + size(piece->second);
    if (address >= end) return true;
  }
  return false;
}

constexpr auto bytesOf = [](auto& lease) { return lease.bytes; };

}  // namespace

MemoryPool::~MemoryPool() {
  while (!deviceLeases.empty()) endLease(deviceLeases.begin()->first);
  for (unsigned device = 0; device < maxDevices; ++device)
    if (reservedArenas & (1u << device)) driver.cuMemAddressFree(deviceArena(device), deviceArenaBytes);
  for (auto& [address, lease] : hostLeases) driver.cuMemHostUnregister(fromWire<void*>(address));
}

void MemoryPool::reserveArena(unsigned device) {
  CUdeviceptr got = 0;
  require(driver, driver.cuMemAddressReserve(&got, deviceArenaBytes, 0, deviceArena(device), 0),
          "reserving the device arena");
  if (got != deviceArena(device)) {
    driver.cuMemAddressFree(got, deviceArenaBytes);
    KJ_FAIL_REQUIRE("the driver put the device arena elsewhere", device, kj::hex(deviceArena(device)), kj::hex(got));
  }
  reservedArenas |= 1u << device;
}

CUresult MemoryPool::lease(unsigned device, uint64_t address, uint64_t bytes) {
  if (bytes == 0 || bytes % leaseGranularity != 0 || address % leaseGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (address < deviceArena(device) || bytes > deviceArenaBytes || address - deviceArena(device) > deviceArenaBytes - bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (!isFree(deviceLeases, address, bytes, bytesOf)) return CUDA_ERROR_INVALID_VALUE;

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(device)};
  CUmemGenericAllocationHandle physical;
  if (CUresult error = driver.cuMemCreate(&physical, bytes, &properties, 0)) return error;
  CUresult error = driver.cuMemMap(address, bytes, 0, physical, 0);
  if (error == CUDA_SUCCESS) {
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    error = driver.cuMemSetAccess(address, bytes, &access, 1);
    if (error != CUDA_SUCCESS) driver.cuMemUnmap(address, bytes);
  }
  if (error != CUDA_SUCCESS) {
    driver.cuMemRelease(physical);
    return error;
  }
  deviceLeases.emplace(address, Lease{bytes, physical});
  return CUDA_SUCCESS;
}

CUresult MemoryPool::endLease(uint64_t address) {
  auto found = deviceLeases.find(address);
  if (found == deviceLeases.end()) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = driver.cuMemUnmap(address, found->second.bytes);
  CUresult released = driver.cuMemRelease(found->second.physical);
  deviceLeases.erase(found);
  return error != CUDA_SUCCESS ? error : released;
}

CUresult MemoryPool::registerHost(uint64_t address, uint64_t bytes) {
  return driver.cuMemHostRegister_v2(fromWire<void*>(address), bytes,
                                     CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
}

CUresult MemoryPool::registerAgain(unsigned device) {
  for (auto& [address, lease] : hostLeases)
    if (lease.device == device)
      if (CUresult error = registerHost(address, lease.bytes)) return error;
  return CUDA_SUCCESS;
}

CUresult MemoryPool::hostLease(unsigned device, uint64_t address, uint64_t bytes) {
  if (bytes == 0 || bytes % 4096 != 0 || address % 4096 != 0 || bytes > hostArenaBytes || !inHostArena(address) ||
      address - hostArenaBase > hostArenaBytes - bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (!isFree(hostLeases, address, bytes, bytesOf)) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = registerHost(address, bytes);
  if (error == CUDA_SUCCESS) hostLeases.emplace(address, HostLease{bytes, device});
  return error;
}

CUresult MemoryPool::endHostLease(uint64_t address, const MemoryFile& arena) {
  auto found = hostLeases.find(address);
  if (found == hostLeases.end()) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = driver.cuMemHostUnregister(fromWire<void*>(address));
  int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  KJ_SYSCALL(fallocate(arena.fd(), hole, static_cast<off_t>(address - hostArenaBase),
                       static_cast<off_t>(found->second.bytes)));
  hostLeases.erase(found);
  return error;
}

bool MemoryPool::ownsDevice(uint64_t address, uint64_t bytes) const {
  return isCovered(deviceLeases, address, bytes, bytesOf);
}

bool MemoryPool::ownsHost(uint64_t address, uint64_t bytes) const {
  return isCovered(hostLeases, address, bytes, bytesOf);
}

uint64_t MemoryPool::leasedBytes() const {
  uint64_t bytes = 0;
  for (auto& [address, lease] : deviceLeases) bytes += lease.bytes;
  return bytes;
}

}  // namespace vgpu::stub
