#include "stub/gpu/device-leases.h"

#include <kj/debug.h>

#include "stub/gpu/ranges.h"

namespace vgpu::stub {

namespace {

constexpr auto bytesOf = [](auto& lease) { return lease.bytes; };

CUmemAccessDesc accessOf(CUdevice device) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, {device}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

}  // namespace

DeviceLeases::~DeviceLeases() {
  while (!leases.empty()) endLease(leases.begin()->first);
  if (isReserved) driver.cuMemAddressFree(deviceArena(device), deviceArenaBytes);
}

void DeviceLeases::reserveArena() {
  CUdeviceptr got = 0;
  require(driver, driver.cuMemAddressReserve(&got, deviceArenaBytes, 0, deviceArena(device), 0),
          "reserving the device arena");
  if (got != deviceArena(device)) {
    driver.cuMemAddressFree(got, deviceArenaBytes);
    KJ_FAIL_REQUIRE("the driver put the device arena elsewhere", device, kj::hex(deviceArena(device)), kj::hex(got));
  }
  isReserved = true;
  std::lock_guard lock(mutex);
  access.push_back(accessOf(driver.device(device)));
}

void DeviceLeases::letReach(unsigned other) {
  CUdevice from = driver.device(other), to = driver.device(device);
  int reaches = 0;
  if (from == to) return;  // one GPU in the place of both
  require(driver, driver.cuDeviceCanAccessPeer(&reaches, from, to), "asking for peers");
  if (reaches == 0) return;
  std::lock_guard lock(mutex);
  access.push_back(accessOf(from));
  for (auto& [address, lease] : leases)
    require(driver, driver.cuMemSetAccess(address, lease.bytes, &access.back(), 1), "letting a device reach another's memory");
}

CUresult DeviceLeases::lease(uint64_t address, uint64_t bytes) {
  if (bytes == 0 || bytes % leaseGranularity != 0 || address % leaseGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (address < deviceArena(device) || bytes > deviceArenaBytes ||
      address - deviceArena(device) > deviceArenaBytes - bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (!isFree(leases, address, bytes, bytesOf)) return CUDA_ERROR_INVALID_VALUE;

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, driver.device(device)};
  CUmemGenericAllocationHandle physical;
  if (CUresult error = driver.cuMemCreate(&physical, bytes, &properties, 0)) return error;
  CUresult error = driver.cuMemMap(address, bytes, 0, physical, 0);
  if (error == CUDA_SUCCESS) {
    std::lock_guard lock(mutex);
    error = driver.cuMemSetAccess(address, bytes, access.data(), access.size());
    if (error == CUDA_SUCCESS) return leases.emplace(address, Lease{bytes, physical}), CUDA_SUCCESS;
    driver.cuMemUnmap(address, bytes);
  }
  driver.cuMemRelease(physical);
  return error;
}

CUresult DeviceLeases::endLease(uint64_t address) {
  auto found = leases.find(address);
  if (found == leases.end()) return CUDA_ERROR_INVALID_VALUE;
  Lease lease = found->second;
  {
    std::lock_guard lock(mutex);
    leases.erase(found);
  }
  CUresult error = driver.cuMemUnmap(address, lease.bytes);
  CUresult released = driver.cuMemRelease(lease.physical);
  return error != CUDA_SUCCESS ? error : released;
}

bool DeviceLeases::owns(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  return isCovered(leases, address, bytes, bytesOf);
}

}  // namespace vgpu::stub
