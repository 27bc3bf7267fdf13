// Physical memory that two processes share by a file descriptor, one piece at a time.
#pragma once

#include <cuda.h>

#include "driver-entry.h"

inline CUmemAllocationProp exportable() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

inline size_t granularity() {
  size_t bytes = 0;
  CUmemAllocationProp properties = exportable();
  CALL(cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return bytes;
}

inline unsigned* map(CUmemGenericAllocationHandle physical) {
  CUdeviceptr address = 0;
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CALL(cuMemAddressReserve, &address, granularity(), 0, 0, 0);
  CALL(cuMemMap, address, granularity(), 0, physical, 0);
  CALL(cuMemSetAccess, address, granularity(), &access, 1);
  return reinterpret_cast<unsigned*>(address);
}

inline void unmap(unsigned* memory) {
  CALL(cuMemUnmap, reinterpret_cast<CUdeviceptr>(memory), granularity());
  CALL(cuMemAddressFree, reinterpret_cast<CUdeviceptr>(memory), granularity());
}
