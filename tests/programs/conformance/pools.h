// Pools of every kind that CUDA has, and queries about them.
#pragma once

#include "numbers.h"

constexpr CUmemAllocationType pinned = CU_MEM_ALLOCATION_TYPE_PINNED, managed = CU_MEM_ALLOCATION_TYPE_MANAGED;
constexpr CUmemLocationType none = CU_MEM_LOCATION_TYPE_NONE, device = CU_MEM_LOCATION_TYPE_DEVICE,
                            host = CU_MEM_LOCATION_TYPE_HOST, numa = CU_MEM_LOCATION_TYPE_HOST_NUMA,
                            current = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
constexpr CUmemLocationType allPlaces[] = {none, device, host, numa, current};

struct Kind {
  CUmemAllocationType type;
  CUmemLocationType place;
};
constexpr Kind kinds[] = {{pinned, device}, {pinned, host}, {pinned, numa}, {managed, none},
                          {managed, device}, {managed, host}, {managed, numa}};

inline CUmemPoolProps propertiesOf(Kind kind, int id = 0) {
  CUmemPoolProps properties{};
  properties.allocType = kind.type;
  properties.location = {kind.place, id};
  return properties;
}

inline CUmemoryPool create(Kind kind, size_t mostBytes = 0) {
  CUmemPoolProps properties = propertiesOf(kind);
  properties.maxSize = mostBytes;
  CUmemoryPool pool = nullptr;
  SAYCU(cuMemPoolCreate, &pool, &properties);
  return pool;
}

inline void sayCase(const char* what, std::initializer_list<Number> numbers, CUresult result) {
  std::printf("%s: %s", currentSection, what);
  for (Number number : numbers) std::printf(" %" PRId64, number.value);
  std::printf(" = %s\n", nameOf(result));
}

inline void sayAttributes(CUmemoryPool pool) {
  for (int which = 0; which <= 9; ++which) {
    uint64_t value = 0;
    CUresult result = DRIVER(cuMemPoolGetAttribute)(pool, static_cast<CUmemPool_attribute>(which), &value);
    if (result == CUDA_SUCCESS) sayNumbers("attribute, value", {which, value});
    else sayCase("attribute", {which}, result);
  }
}

inline void sayAmounts(CUmemoryPool pool) {
  uint64_t value[4] = {};
  const CUmemPool_attribute which[] = {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                                       CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_HIGH};
  for (int i = 0; i < 4; ++i) DRIVER(cuMemPoolGetAttribute)(pool, which[i], &value[i]);
  sayNumbers("reserved, high; used, high", {value[0], value[1], value[2], value[3]});
}

inline void sayAccess(CUmemoryPool pool) {
  for (CUmemLocationType place : allPlaces)
    for (int id : {0, 99}) {
      CUmemLocation location{place, id};
      CUmemAccess_flags flags = static_cast<CUmemAccess_flags>(77);
      CUresult result = DRIVER(cuMemPoolGetAccess)(&flags, pool, &location);
      sayCase("access: place, id, flags", {place, id, flags}, result);
    }
}
