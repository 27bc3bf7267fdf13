// Virtual memory management: which calls are refused, and where.
#include "conformance.h"

static CUmemAllocationProp onDevice(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

SECTION(uses) {
  CHECK(cudaFree(nullptr));
  size_t bytes = 0;
  CUmemAllocationProp properties = onDevice(0), nowhere = onDevice(99), none{};
  CUmemGenericAllocationHandle handle = 0, again = 0, two = 0;
  CUdeviceptr base = 0, other = 0;
  SAYCU(cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  SAYCU(cuMemGetAllocationGranularity, &bytes, &properties, static_cast<CUmemAllocationGranularity_flags>(7));
  SAYCU(cuMemGetAllocationGranularity, &bytes, &none, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  SAYCU(cuMemCreate, &handle, bytes + 1, &properties, 0);
  SAYCU(cuMemCreate, &handle, 0, &properties, 0);
  SAYCU(cuMemCreate, &handle, bytes, &properties, 1);
  SAYCU(cuMemCreate, &handle, bytes, &nowhere, 0);
  SAYCU(cuMemCreate, &handle, bytes, &none, 0);
  SAYCU(cuMemCreate, &handle, size_t{1} << 45, &properties, 0);
  SAYCU(cuMemAddressReserve, &base, 0, 0, 0, 0);
  SAYCU(cuMemAddressReserve, &base, bytes, 3, 0, 0);
  SAYCU(cuMemAddressReserve, &base, bytes, 0, 0, 1);
  SAYCU(cuMemAddressReserve, &base, bytes / 2, 0, 0, 0);
  SAYCU(cuMemAddressReserve, &base, 4 * bytes, 0, 0, 0);
  SAYCU(cuMemCreate, &two, 2 * bytes, &properties, 0);
  SAYCU(cuMemMap, base + 4 * bytes, bytes, 0, two, 0);
  SAYCU(cuMemMap, base, 4 * bytes, 0, two, 0);
  SAYCU(cuMemMap, base + 1, bytes, 0, two, 0);
  SAYCU(cuMemMap, base, 2 * bytes, 0, two, 1);
  SAYCU(cuMemMap, base, bytes, bytes, two, 0);
  SAYCU(cuMemMap, base, 2 * bytes, 0, two, 0);
  SAYCU(cuMemMap, base + bytes, 2 * bytes, 0, two, 0);
  SAYCU(cuMemMap, base + 2 * bytes, 2 * bytes, 0, two, 0);
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  unsigned word = 0;
  SAYCU(cuMemcpyDtoH, &word, base, sizeof word);
  SAYCU(cuMemSetAccess, base, bytes, &access, 1);
  SAYCU(cuMemSetAccess, base, 2 * bytes, &access, 0);
  access.location.id = 99;
  SAYCU(cuMemSetAccess, base, 2 * bytes, &access, 1);
  access.location.id = 0;
  SAYCU(cuMemSetAccess, base, 2 * bytes, &access, 1);
  SAYCU(cuMemSetAccess, base + 1, 2 * bytes, &access, 1);
  SAYCU(cuMemSetAccess, base, 4 * bytes, &access, 1);
  unsigned long long flags = 0;
  SAYCU(cuMemGetAccess, &flags, &access.location, base);
  VALUE(flags);
  SAYCU(cuMemsetD8, base, 7, 4 * bytes);
  SAYCU(cuMemcpyDtoH, &word, base + 2 * bytes, sizeof word);
  VALUE(word);
  SAYCU(cuMemRetainAllocationHandle, &again, reinterpret_cast<void*>(base));
  VALUE(again == two);
  SAYCU(cuMemGetAllocationPropertiesFromHandle, &none, two);
  VALUE(none.location.type);
  SAYCU(cuMemFree, base);
  SAYCU(cuMemAddressFree, base, 4 * bytes);
  SAYCU(cuMemUnmap, base, bytes);
  SAYCU(cuMemUnmap, base, 2 * bytes);
  SAYCU(cuMemUnmap, base, 4 * bytes);
  SAYCU(cuMemUnmap, base, 4 * bytes);
  SAYCU(cuMemcpyDtoH, &word, base, sizeof word);
  SAYCU(cuMemAddressFree, base, bytes);
  SAYCU(cuMemAddressFree, base + bytes, 3 * bytes);
  SAYCU(cuMemRelease, two);
  SAYCU(cuMemRelease, again);
  SAYCU(cuMemAddressFree, base, 4 * bytes);
  SAYCU(cuMemAddressReserve, &other, bytes, 0, base, 0);
  VALUE(other == base);
  int descriptor = -1;
  SAYCU(cuMemCreate, &handle, bytes, &properties, 0);
  SAYCU(cuMemExportToShareableHandle, &descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  SAYCU(cuMemRelease, handle);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  SAYCU(cuMemCreate, &handle, bytes, &properties, 0);
  SAYCU(cuMemExportToShareableHandle, &descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  SAYCU(cuMemExportToShareableHandle, &descriptor, handle, CU_MEM_HANDLE_TYPE_WIN32, 0);
  SAYCU(cuMemImportFromShareableHandle, &again, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  SAYCU(cuMemImportFromShareableHandle, &again, reinterpret_cast<void*>(intptr_t{0}), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}
