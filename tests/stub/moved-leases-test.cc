// Managed memory whose pages are in the memory of several GPUs, at the addresses of one GPU's lease.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "stub/gpu/device-leases.h"

using namespace vgpu;
using namespace vgpu::stub;

namespace {

// Two GPUs with some free memory, and their mappings. One number stands for the bytes of each granule.
struct {
  struct Object {
    CUdevice gpu;
    uint64_t bytes;
    std::vector<uint64_t> granules;
  };
  uint64_t free[2] = {};
  uint64_t made = 0;
  std::map<CUmemGenericAllocationHandle, Object> objects;
  std::map<uint64_t, CUmemGenericAllocationHandle> mapped;  // by address

  uint64_t& at(uint64_t address) {
    auto [begin, handle] = *std::prev(mapped.upper_bound(address));
    return objects.at(handle).granules.at((address - begin) / leaseGranularity);
  }
} gpus;

Driver driverOfTwo() {
  Driver driver;
  driver.cuMemAddressReserve = [](CUdeviceptr* got, size_t, size_t, CUdeviceptr wanted, unsigned long long) {
    return *got = wanted, CUDA_SUCCESS;
  };
  driver.cuMemAddressFree = [](CUdeviceptr, size_t) { return CUDA_SUCCESS; };
  driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute, CUdevice) { return *value = 1, CUDA_SUCCESS; };
  driver.cuDeviceCanAccessPeer = [](int* reaches, CUdevice, CUdevice) { return *reaches = 1, CUDA_SUCCESS; };
  driver.cuMemCreate = [](CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                          unsigned long long) {
    const CUdevice gpu = properties->location.id;
    if (gpus.free[gpu] < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    gpus.free[gpu] -= bytes;
    *handle = ++gpus.made;
    gpus.objects[*handle] = {gpu, bytes, std::vector<uint64_t>(bytes / leaseGranularity)};
    return CUDA_SUCCESS;
  };
  driver.cuMemRelease = [](CUmemGenericAllocationHandle handle) {
    auto object = gpus.objects.extract(handle);
    gpus.free[object.mapped().gpu] += object.mapped().bytes;
    return CUDA_SUCCESS;
  };
  driver.cuMemMap = [](CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle, unsigned long long) {
    if (gpus.objects.at(handle).bytes != bytes) return CUDA_ERROR_NOT_SUPPORTED;
    return gpus.mapped.emplace(address, handle).second ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  driver.cuMemUnmap = [](CUdeviceptr address, size_t) { return gpus.mapped.erase(address), CUDA_SUCCESS; };
  driver.cuMemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; };
  driver.cuMemcpyDtoD_v2 = [](CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    for (uint64_t at = 0; at < bytes; at += leaseGranularity) gpus.at(to + at) = gpus.at(from + at);
    return CUDA_SUCCESS;
  };
  driver.cuCtxSynchronize_v2 = [](CUcontext) { return CUDA_SUCCESS; };
  return driver;
}

constexpr uint64_t managedPlace = deviceArena(0) + managedPart, wholeLease = 1 * GiB;

// A lease on the first of two GPUs, with a distinct number in each granule.
struct TwoGpus {
  Driver driver = driverOfTwo();
  DeviceLeases leases{driver, 0};

  explicit TwoGpus(uint64_t free0 = 8 * GiB, uint64_t free1 = 8 * GiB) {
    gpus = {};
    gpus.free[0] = free0;
    gpus.free[1] = free1;
    leases.reserveArena(true);
    leases.letReach(1);
  }
  void lease() {
    REQUIRE(leases.lease(managedPlace, wholeLease) == CUDA_SUCCESS);
    for (uint64_t i = 0; i < wholeLease / leaseGranularity; ++i) gpus.at(managedPlace + i * leaseGranularity) = i + 1;
  }
  CUresult move(const std::vector<DeviceLeases::Placement>& placements) {
    auto moves = leases.findMoves(managedPlace, placements);
    REQUIRE(moves.has_value());
    return leases.move(*moves);
  }
  bool isWhole() const {
    for (uint64_t i = 0; i < wholeLease / leaseGranularity; ++i)
      if (gpus.at(managedPlace + i * leaseGranularity) != i + 1) return false;
    return true;
  }
  // How many bytes of the lease are in the second GPU's memory.
  uint64_t bytesThere() const {
    uint64_t bytes = 0;
    for (auto& [address, handle] : gpus.mapped)
      if (auto& object = gpus.objects.at(handle); object.gpu == 1) bytes += object.bytes;
    return bytes;
  }
};

}  // namespace

TEST_CASE("managed memory moves to another GPU and back, granule by granule, and keeps its bytes") {
  TwoGpus of;
  of.lease();
  const std::vector<DeviceLeases::Placement> parts = {{2 * MiB, 0}, {600 * MiB, 1}, {20 * MiB, 0}, {402 * MiB, 1}};
  CHECK(of.move(parts) == CUDA_SUCCESS);
  CHECK(of.bytesThere() == 1002 * MiB);
  CHECK(of.isWhole());
  CHECK(of.leases.findMoves(managedPlace, parts)->empty());
  CHECK(of.move({{wholeLease, 0}}) == CUDA_SUCCESS);
  CHECK(of.bytesThere() == 0);
  CHECK(of.isWhole());
  CHECK(gpus.free[0] == 7 * GiB);
  CHECK(gpus.free[1] == 8 * GiB);
  CHECK(of.leases.endLease(managedPlace) == CUDA_SUCCESS);
  CHECK(gpus.mapped.empty());
  CHECK(gpus.objects.empty());
}

TEST_CASE("dividing a lease needs little additional memory") {
  TwoGpus of(wholeLease + 256 * MiB, wholeLease);
  of.lease();
  CHECK(of.move({{100 * MiB, 1}, {100 * MiB, 0}, {100 * MiB, 1}, {wholeLease - 300 * MiB, 0}}) == CUDA_SUCCESS);
  CHECK(of.bytesThere() == 200 * MiB);
  CHECK(of.isWhole());
}

TEST_CASE("memory for which the other GPU has no room stays where it is") {
  TwoGpus of(8 * GiB, 300 * MiB);
  of.lease();
  CHECK(of.move({{wholeLease, 1}}) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(of.bytesThere() == 256 * MiB);
  CHECK(of.isWhole());
  CHECK(gpus.free[1] == 44 * MiB);
}

TEST_CASE("a lease is made at its planned placement, or on its own GPU if there is no memory") {
  for (uint64_t there : {8 * GiB, 64 * MiB}) {
    TwoGpus of(8 * GiB, there);
    of.leases.plan(managedPlace, {{512 * MiB, 1}, {512 * MiB, 0}});
    of.lease();
    CHECK(of.bytesThere() == (there > wholeLease ? 512 * MiB : 0));
    of.leases.endUnclaimed();
    CHECK(of.leases.endLease(managedPlace) == CUDA_SUCCESS);
    of.lease();
    CHECK(of.bytesThere() == 0);
  }
}

TEST_CASE("managed memory that is leased ahead is placed on another GPU if its own has too little memory") {
  TwoGpus of(600 * MiB, 8 * GiB);
  CHECK(of.leases.lease(managedPlace, wholeLease) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(of.leases.leaseAhead(deviceArena(0), wholeLease) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(of.leases.leaseAhead(managedPlace, wholeLease) == CUDA_SUCCESS);
  CHECK(of.bytesThere() == 512 * MiB);
  of.lease();
  CHECK(of.move({{wholeLease, 1}}) == CUDA_SUCCESS);
  CHECK(of.isWhole());
}

TEST_CASE("placements are whole granules and cover all of a lease of managed memory, or are refused") {
  TwoGpus of;
  of.lease();
  REQUIRE(of.leases.lease(deviceArena(0), wholeLease) == CUDA_SUCCESS);
  CHECK_FALSE(of.leases.findMoves(deviceArena(0), {{wholeLease, 1}}).has_value());
  CHECK_FALSE(of.leases.findMoves(managedPlace + 2 * MiB, {{wholeLease, 1}}).has_value());
  CHECK_FALSE(of.leases.findMoves(managedPlace, {}).has_value());
  CHECK_FALSE(of.leases.findMoves(managedPlace, {{wholeLease - 2 * MiB, 1}}).has_value());
  CHECK_FALSE(of.leases.findMoves(managedPlace, {{wholeLease, 1}, {2 * MiB, 0}}).has_value());
  CHECK_FALSE(of.leases.findMoves(managedPlace, {{0, 0}, {wholeLease, 1}}).has_value());
  CHECK_FALSE(of.leases.findMoves(managedPlace, {{wholeLease / 2 + 1, 0}, {wholeLease / 2 - 1, 1}}).has_value());
  CHECK_FALSE(of.leases.findMoves(managedPlace, {{UINT64_MAX - 2 * MiB + 1, 0}, {wholeLease, 1}}).has_value());
  CHECK(of.isWhole());
}
