#include "intercept/session/memory/pool-place.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "intercept/session/memory/stream-pools.h"

using namespace vgpu;
using namespace vgpu::client;

TEST_CASE("each location of pools has its own number, and memory of a device has the device's number") {
  for (unsigned number = 0; number < PoolPlace::count; ++number) CHECK(PoolPlace::at(number).number() == number);
  for (int device = 0; device < static_cast<int>(maxDevices); ++device) {
    PoolPlace place{CU_MEM_ALLOCATION_TYPE_PINNED, {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CHECK(place.number() == static_cast<unsigned>(device));
    CHECK(PoolPlace::at(place.number()) == place);
  }
}

TEST_CASE("host locations are one place whatever their id; a NUMA node and a device are not") {
  auto find = [](CUmemAllocationType type, CUmemLocation location) {
    PoolPlace place;
    CUresult result = PoolPlace::find(type, location, 2, place);
    return result == CUDA_SUCCESS ? static_cast<int>(place.number()) : -result;
  };
  const auto pinned = CU_MEM_ALLOCATION_TYPE_PINNED, managed = CU_MEM_ALLOCATION_TYPE_MANAGED;
  CHECK(find(pinned, {CU_MEM_LOCATION_TYPE_HOST, 99}) == find(pinned, {CU_MEM_LOCATION_TYPE_HOST, -1}));
  CHECK(find(managed, {CU_MEM_LOCATION_TYPE_NONE, 7}) == find(managed, {CU_MEM_LOCATION_TYPE_NONE, 0}));
  CHECK(find(pinned, {CU_MEM_LOCATION_TYPE_HOST, 0}) != find(managed, {CU_MEM_LOCATION_TYPE_HOST, 0}));
  CHECK(find(pinned, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}) != find(pinned, {CU_MEM_LOCATION_TYPE_HOST, 0}));
  CHECK(find(pinned, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 1}) == -CUDA_ERROR_INVALID_VALUE);
  CHECK(find(pinned, {CU_MEM_LOCATION_TYPE_DEVICE, 1}) == 1);
  CHECK(find(pinned, {CU_MEM_LOCATION_TYPE_DEVICE, 2}) == -CUDA_ERROR_INVALID_VALUE);
  CHECK(find(managed, {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}) == -CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("a pool's own location has access to its memory from the start, if it can have access") {
  for (unsigned number = 0; number < PoolPlace::count; ++number) {
    const PoolPlace place = PoolPlace::at(number);
    CAPTURE(number);
    const StreamPool pool(place);
    const auto own = StreamPool::accessor(place.location, maxDevices);
    const auto given = std::ranges::count(pool.access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(given == (own && !place.isManaged() ? 1 : 0));
    CHECK(static_cast<size_t>(given + std::ranges::count(pool.access, CU_MEM_ACCESS_FLAGS_PROT_NONE)) == pool.access.size());
    if (given == 1) CHECK(pool.access[*own] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
}
