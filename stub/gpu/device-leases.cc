#include "stub/gpu/device-leases.h"

#include <kj/debug.h>

#include <algorithm>

#include "vgpu/api/wire-value.h"
#include "vgpu/base/ranges.h"

namespace vgpu::stub {

namespace {

constexpr uint64_t mostManagedOfSeveral = 256 * MiB;

CUmemAccessDesc accessOf(CUdevice device) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, {device}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

}  // namespace

DeviceLeases::~DeviceLeases() {
  while (!leases.empty()) endLease(leases.begin()->first);
  if (isReserved) driver.cuMemAddressFree(deviceArena(device), deviceArenaBytes);
}

void DeviceLeases::reserveArena(bool isOneOfSeveral) {
  CUdeviceptr got = 0;
  require(driver, driver.cuMemAddressReserve(&got, deviceArenaBytes, 0, deviceArena(device), 0),
          "reserving the device arena");
  if (got != deviceArena(device)) {
    driver.cuMemAddressFree(got, deviceArenaBytes);
    KJ_FAIL_REQUIRE("the driver reserved the device arena at another address", device, kj::hex(deviceArena(device)), kj::hex(got));
  }
  isReserved = true;
  if (isOneOfSeveral) mostManaged = mostManagedOfSeveral;
  int hasDescriptors = 0;
  driver.cuDeviceGetAttribute(&hasDescriptors, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                              driver.device(device));
  if (hasDescriptors != 0) handleType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::lock_guard lock(mutex);
  access.push_back(accessOf(driver.device(device)));
}

void DeviceLeases::letReach(unsigned other) {
  CUdevice from = driver.device(other), to = driver.device(device);
  int reaches = 0;
  if (from == to) return;  // both devices are one GPU
  require(driver, driver.cuDeviceCanAccessPeer(&reaches, from, to), "querying peer access");
  if (reaches == 0) return;
  std::lock_guard lock(mutex);
  access.push_back(accessOf(from));
  for (auto& [address, lease] : leases)
    require(driver, driver.cuMemSetAccess(address, lease.bytes, &access.back(), 1), "enabling peer access");
}

CUresult DeviceLeases::lease(uint64_t address, uint64_t bytes) {
  if (auto ahead = leases.find(address); ahead != leases.end() && ahead->second.isAhead && ahead->second.bytes == bytes) {
    std::lock_guard lock(mutex);
    ahead->second.isAhead = false;
    return CUDA_SUCCESS;
  }
  return makeLease(address, bytes, {driver.device(device)});
}

CUresult DeviceLeases::makeLease(uint64_t address, uint64_t bytes, const std::vector<CUdevice>& gpus) {
  endAhead(address, bytes);
  if (bytes == 0 || !isGranular(bytes) || !isGranular(address)) return CUDA_ERROR_INVALID_VALUE;
  if (address < deviceArena(device) || bytes > movingPart || address - deviceArena(device) > movingPart - bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (!isFree(leases, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Pieces pieces;
  if (CUresult error = makePieces(address, bytes, gpus, pieces)) return error;
  return add(address, bytes, std::move(pieces));
}

CUresult DeviceLeases::makePieces(uint64_t address, uint64_t bytes, const std::vector<CUdevice>& gpus, Pieces& pieces) {
  const uint64_t most = inManagedPart(address) ? mostManaged : bytes;
  std::vector<Placement> placements{{bytes, device}};
  if (auto plan = planned.extract(address); plan && areWhole(plan.mapped(), bytes)) placements = plan.mapped();
  uint64_t at = address;
  for (auto& placement : placements) {
    const CUdevice gpu = driver.device(placement.device);
    for (const uint64_t end = at + placement.bytes; at < end;) {
      Piece piece{};
      CUresult error = make(std::min(most, end - at), gpu, piece);
      for (CUdevice other : gpus)
        if (error == CUDA_ERROR_OUT_OF_MEMORY && other != gpu) error = make(piece.bytes, other, piece);
      if (error != CUDA_SUCCESS) return release(pieces), error;
      pieces.emplace(at, piece);
      at += piece.bytes;
    }
  }
  return CUDA_SUCCESS;
}

// This GPU is the first.
std::vector<CUdevice> DeviceLeases::gpusThatReach() const {
  std::lock_guard lock(mutex);
  std::vector<CUdevice> gpus;
  for (auto& each : access) gpus.push_back(each.location.id);
  return gpus;
}

// For pieces that are not mapped.
void DeviceLeases::release(const Pieces& pieces) {
  for (auto& [at, piece] : pieces) driver.cuMemRelease(piece.physical);
}

CUresult DeviceLeases::leaseAhead(uint64_t address, uint64_t bytes) {
  const auto gpus = inManagedPart(address) ? gpusThatReach() : std::vector{driver.device(device)};
  if (CUresult error = makeLease(address, bytes, gpus)) return error;
  std::lock_guard lock(mutex);
  leases.at(address).isAhead = true;
  return CUDA_SUCCESS;
}

void DeviceLeases::endUnclaimed() {
  planned.clear();
  endAhead(deviceArena(device), deviceArenaBytes);
}

void DeviceLeases::endAhead(uint64_t address, uint64_t bytes) {
  std::vector<uint64_t> overlapping;
  for (auto& [at, lease] : leases)
    if (lease.isAhead && at < address + bytes && address < at + lease.bytes) overlapping.push_back(at);
  for (uint64_t at : overlapping) endLease(at);
}

std::vector<LeasedRange> DeviceLeases::ranges() const {
  std::lock_guard lock(mutex);
  std::vector<LeasedRange> all;
  for (auto& [address, lease] : leases) all.push_back({device, address, lease.bytes});
  return all;
}

CUresult DeviceLeases::make(uint64_t bytes, CUdevice gpu, Piece& piece) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
  properties.requestedHandleTypes = handleType;
  piece = {bytes, 0, gpu};
  return driver.cuMemCreate(&piece.physical, bytes, &properties, 0);
}

// Maps with the access that leases have. `mutex` is held.
CUresult DeviceLeases::map(uint64_t address, const Piece& piece) {
  CUresult error = driver.cuMemMap(address, piece.bytes, 0, piece.physical, 0);
  if (error != CUDA_SUCCESS) return error;
  error = driver.cuMemSetAccess(address, piece.bytes, access.data(), access.size());
  if (error != CUDA_SUCCESS) driver.cuMemUnmap(address, piece.bytes);
  return error;
}

// Maps new pieces as a lease. If one cannot be mapped, all are released.
CUresult DeviceLeases::add(uint64_t address, uint64_t bytes, Pieces pieces) {
  CUresult error = CUDA_SUCCESS;
  uint64_t mappedUpTo = address;
  std::lock_guard lock(mutex);
  for (auto& [at, piece] : pieces) {
    error = map(at, piece);
    if (error != CUDA_SUCCESS) break;
    mappedUpTo = at + piece.bytes;
  }
  if (error == CUDA_SUCCESS) return leases.emplace(address, Lease{bytes, std::move(pieces)}), CUDA_SUCCESS;
  for (auto& [at, piece] : pieces)
    if (at < mappedUpTo) driver.cuMemUnmap(at, piece.bytes);
  release(pieces);
  return error;
}

CUresult DeviceLeases::adopt(uint64_t address, const std::vector<Part>& parts) {
  Pieces pieces;
  uint64_t bytes = 0;
  for (auto& part : parts) bytes += part.bytes;
  if (bytes == 0 || !isGranular(bytes) || !isGranular(address) || address < deviceArena(device) ||
      bytes > managedPart || address - deviceArena(device) > managedPart - bytes || !isFree(leases, address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t at = address;
  for (auto& part : parts) {
    Piece piece{part.bytes, 0, driver.device(device)};
    auto descriptor = fromWire<void*>(static_cast<uint64_t>(part.descriptor));
    CUresult error = driver.cuMemImportFromShareableHandle(&piece.physical, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (error != CUDA_SUCCESS) return release(pieces), error;
    pieces.emplace(at, piece);
    at += part.bytes;
  }
  return add(address, bytes, std::move(pieces));
}

CUresult DeviceLeases::endLease(uint64_t address) {
  auto found = leases.find(address);
  if (found == leases.end()) return CUDA_ERROR_INVALID_VALUE;
  Lease lease = std::move(found->second);
  {
    std::lock_guard lock(mutex);
    leases.erase(found);
  }
  CUresult first = CUDA_SUCCESS;
  for (auto& [at, piece] : lease.pieces)
    for (CUresult error : {driver.cuMemUnmap(at, piece.bytes), driver.cuMemRelease(piece.physical)})
      if (first == CUDA_SUCCESS) first = error;
  return first;
}

bool DeviceLeases::owns(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  return isCovered(leases, address, bytes, [](auto& lease) { return lease.isAhead ? 0 : lease.bytes; });
}

}  // namespace vgpu::stub
