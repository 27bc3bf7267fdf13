// Physical memory of the host, and compressible memory of the device (cuMemCreate): allowed locations, access, and pointer attributes.
#include "conformance.h"

#include <csetjmp>
#include <csignal>

using Handle = CUmemGenericAllocationHandle;

constexpr CUmemLocation onHost{CU_MEM_LOCATION_TYPE_HOST, 0}, onNode{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
    onCurrentNode{CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}, onDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};

static CUmemAllocationProp propertiesOf(CUmemLocation location) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location;
  return properties;
}

constexpr size_t piece = 2 << 20;

__global__ void add(unsigned* words, unsigned value) { words[1] = words[0] + value; }

static sigjmp_buf faulted;
static void onFault(int) { siglongjmp(faulted, 1); }

// Accesses a word from the host, and prints its value, or that access is denied.
static void touch(const char* what, CUdeviceptr address, bool writes) {
  auto* word = reinterpret_cast<volatile unsigned*>(address);
  std::signal(SIGSEGV, onFault);
  if (sigsetjmp(faulted, 1) != 0) std::printf("%s: %s: the host faults\n", currentSection, what);
  else if (writes) *word = *word + 1, std::printf("%s: %s: the host writes\n", currentSection, what);
  else std::printf("%s: %s: the host reads %u\n", currentSection, what, *word);
}

static void tryCreate(CUmemAllocationProp properties, size_t bytes) {
  Handle handle = 0;
  VALUE(properties.location.type);
  VALUE(properties.location.id);
  VALUE(bytes);
  if (SAYCU(cuMemCreate, &handle, bytes, &properties, 0) != CUDA_SUCCESS) return;
  CUmemAllocationProp granted{};
  SAYCU(cuMemGetAllocationPropertiesFromHandle, &granted, handle);
  VALUE(granted.type);
  VALUE(granted.location.type);
  VALUE(granted.location.id);
  VALUE(granted.requestedHandleTypes);
  VALUE(granted.allocFlags.compressionType);
  VALUE(granted.allocFlags.usage);
  SAYCU(cuMemRelease, handle);
}

SECTION(places) {
  CHECK(cudaFree(nullptr));
  int value = 0;
  SAYCU(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
  VALUE(value);
  SAYCU(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
  VALUE(value);
  for (CUmemLocation location : {onHost, onNode, onCurrentNode})
    for (int id : {0, 99, -1}) {
      location.id = id;
      CUmemAllocationProp properties = propertiesOf(location);
      size_t bytes = 0;
      SAYCU(cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      VALUE(bytes);
      tryCreate(properties, piece);
    }
  for (size_t bytes : {size_t{0}, size_t{4096}, size_t{1} << 16, 3 * piece, size_t{1} << 50}) tryCreate(propertiesOf(onHost), bytes);
}

SECTION(properties) {
  CHECK(cudaFree(nullptr));
  for (CUmemLocation location : {onHost, onNode}) {
    CUmemAllocationProp properties = propertiesOf(location);
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    tryCreate(properties, piece);
    properties = propertiesOf(location);
    properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    tryCreate(properties, piece);
    properties = propertiesOf(location);
    properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    tryCreate(properties, piece);
    properties = propertiesOf(location);
    properties.type = CU_MEM_ALLOCATION_TYPE_MANAGED;
    tryCreate(properties, piece);
  }
  CUmemAllocationProp properties = propertiesOf(onHost);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  tryCreate(properties, piece);
}

SECTION(descriptors) {
  CHECK(cudaFree(nullptr));
  CUmemAllocationProp properties = propertiesOf(onNode);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  tryCreate(properties, piece);
}

static void sayProperties(Handle handle) {
  CUmemAllocationProp granted{};
  SAYCU(cuMemGetAllocationPropertiesFromHandle, &granted, handle);
  VALUE(granted.location.type);
  VALUE(granted.location.id);
  VALUE(granted.requestedHandleTypes);
}

static Handle import(int descriptor) {
  Handle handle = 0;
  SAYCU(cuMemImportFromShareableHandle, &handle, reinterpret_cast<void*>(intptr_t(descriptor)), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  return handle;
}

static CUdeviceptr mapOnce(Handle handle) {
  CUdeviceptr address = 0;
  SAYCU(cuMemAddressReserve, &address, piece, 0, 0, 0);
  SAYCU(cuMemMap, address, piece, 0, handle, 0);
  CUmemAccessDesc access{onDevice, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  SAYCU(cuMemSetAccess, address, piece, &access, 1);
  return address;
}

// Imports an allocation into the process that exported it.
static void importOwn(CUmemLocation location) {
  CUmemAllocationProp properties = propertiesOf(location);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  Handle handle = 0;
  SAYCU(cuMemCreate, &handle, piece, &properties, 0);
  int first = -1, second = -1, third = -1;
  SAYCU(cuMemExportToShareableHandle, &first, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  SAYCU(cuMemExportToShareableHandle, &second, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  SAYCU(cuMemExportToShareableHandle, &third, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1);
  SAYCU(cuMemExportToShareableHandle, &third, handle, CU_MEM_HANDLE_TYPE_NONE, 0);
  VALUE(first != second);
  const Handle one = import(first), two = import(first), other = import(second);
  VALUE(one == handle);
  VALUE(two == one);
  VALUE(other == one);
  sayProperties(handle);
  sayProperties(one);
  SAYCU(cuMemExportToShareableHandle, &third, one, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  close(first);
  close(second);

  const CUdeviceptr here = mapOnce(handle), there = mapOnce(one);
  SAYCU(cuMemsetD32, here, 7, piece / 4);
  add<<<1, 1>>>(reinterpret_cast<unsigned*>(there), 3);
  unsigned words[3] = {};
  SAYCU(cuMemcpyDtoH, words, here, sizeof words);
  VALUE(words[1]);
  Handle found = 0;
  SAYCU(cuMemRetainAllocationHandle, &found, reinterpret_cast<void*>(there));
  VALUE(found == handle);
  VALUE(found == one);
  SAYCU(cuMemRelease, handle);
  SAYCU(cuMemUnmap, here, piece);
  add<<<1, 1>>>(reinterpret_cast<unsigned*>(there), 5);
  SAYCU(cuMemcpyDtoH, words, there, sizeof words);
  VALUE(words[1]);
  for (Handle each : {one, two, other, found}) SAYCU(cuMemRelease, each);
  sayProperties(one);
  SAYCU(cuMemcpyDtoH, words, there, sizeof words);
  SAYCU(cuMemUnmap, there, piece);
}

SECTION(importsOfHost) {
  CHECK(cudaFree(nullptr));
  importOwn(onNode);
}
SECTION(importsOfDevice) {
  CHECK(cudaFree(nullptr));
  importOwn(onDevice);
}

SECTION(compressible) {
  CHECK(cudaFree(nullptr));
  int value = 0;
  SAYCU(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0);
  VALUE(value);
  for (unsigned char type : {0, 1, 2, 200}) {
    CUmemAllocationProp properties = propertiesOf(onDevice);
    properties.allocFlags.compressionType = type;
    tryCreate(properties, piece);
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    tryCreate(properties, piece);
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    tryCreate(properties, piece);
  }
  CUmemAllocationProp properties = propertiesOf(onDevice);
  properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  Handle handle = 0;
  CUdeviceptr base = 0;
  SAYCU(cuMemCreate, &handle, piece, &properties, 0);
  SAYCU(cuMemAddressReserve, &base, 2 * piece, 0, 0, 0);
  SAYCU(cuMemMap, base, piece, 0, handle, 0);
  SAYCU(cuMemMap, base + piece, piece, 0, handle, 0);
  CUmemAccessDesc access{onDevice, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  SAYCU(cuMemSetAccess, base, 2 * piece, &access, 1);
  SAYCU(cuMemsetD32, base, 7, piece / 4);
  add<<<1, 1>>>(reinterpret_cast<unsigned*>(base), 3);
  unsigned words[2] = {};
  SAYCU(cuMemcpyDtoH, words, base + piece, sizeof words);
  VALUE(words[0]);
  VALUE(words[1]);
}

// Maps `bytes` of memory at that location, at the beginning of `reserved` bytes of addresses; no access is granted yet.
static CUdeviceptr mapped(CUmemLocation location, size_t bytes, size_t reserved) {
  Handle handle = 0;
  CUdeviceptr base = 0;
  CUmemAllocationProp properties = propertiesOf(location);
  SAYCU(cuMemCreate, &handle, bytes, &properties, 0);
  SAYCU(cuMemAddressReserve, &base, reserved, 0, 0, 0);
  SAYCU(cuMemMap, base, bytes, 0, handle, 0);
  SAYCU(cuMemRelease, handle);
  return base;
}

static void sayAccess(CUdeviceptr address) {
  for (CUmemLocation location : {onDevice, onHost, onNode, onCurrentNode})
    for (int id : {0, 99}) {
      location.id = id;
      unsigned long long flags = 99;
      VALUE(location.type);
      VALUE(location.id);
      if (SAYCU(cuMemGetAccess, &flags, &location, address) == CUDA_SUCCESS) VALUE(flags);
    }
}

SECTION(access) {
  CHECK(cudaFree(nullptr));
  CUdeviceptr base = mapped(onHost, 2 * piece, 4 * piece);
  sayAccess(base);
  touch("without access", base, false);
  for (CUmemLocation location : {onHost, onNode, onCurrentNode})
    for (int id : {0, 99}) {
      location.id = id;
      VALUE(location.type);
      VALUE(location.id);
      CUmemAccessDesc access{location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      if (SAYCU(cuMemSetAccess, base, 2 * piece, &access, 1) != CUDA_SUCCESS) continue;
      touch("to read and write", base, true);
      sayAccess(base);
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
      SAYCU(cuMemSetAccess, base, 2 * piece, &access, 1);
      touch("to read", base, false);
      touch("to read", base, true);
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
      SAYCU(cuMemSetAccess, base, 2 * piece, &access, 1);
      touch("none", base, false);
      access.flags = static_cast<CUmemAccess_flags>(2);
      SAYCU(cuMemSetAccess, base, 2 * piece, &access, 1);
    }
  CUmemAccessDesc both[] = {{onDevice, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}, {onHost, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  SAYCU(cuMemSetAccess, base, piece, both, 2);
  SAYCU(cuMemSetAccess, base, 4 * piece, both, 2);
  SAYCU(cuMemSetAccess, base, 2 * piece, both, 2);
  sayAccess(base);
  touch("both", base, true);
  add<<<1, 1>>>(reinterpret_cast<unsigned*>(base), 100);
  SAY(cudaDeviceSynchronize());
  touch("behind a kernel", base + 4, false);
  SAYCU(cuMemUnmap, base, piece);
  SAYCU(cuMemUnmap, base, 2 * piece);
  touch("unmapped", base, false);
  SAYCU(cuMemAddressFree, base, 4 * piece);
}

// The host has no access to the device's memory.
SECTION(hostOfDevice) {
  CHECK(cudaFree(nullptr));
  CUdeviceptr base = mapped(onDevice, piece, piece);
  for (CUmemLocation location : {onHost, onNode, onCurrentNode}) {
    CUmemAccessDesc access{location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    SAYCU(cuMemSetAccess, base, piece, &access, 1);
    unsigned long long flags = 99;
    if (SAYCU(cuMemGetAccess, &flags, &location, base) == CUDA_SUCCESS) VALUE(flags);
  }
}

template <typename Value>
static void sayAttribute(const char* name, CUpointer_attribute attribute, CUdeviceptr address, int64_t (*show)(Value, CUdeviceptr)) {
  Value value{};
  CUresult result = DRIVER(cuPointerGetAttribute)(&value, attribute, address);
  std::printf("%s: %s = %s\n", currentSection, name, nameOf(result));
  if (result == CUDA_SUCCESS) std::printf("%s: it is %" PRId64 "\n", currentSection, show(value, address));
}
static int64_t number(unsigned value, CUdeviceptr) { return value; }
static int64_t large(unsigned long long value, CUdeviceptr) { return static_cast<int64_t>(value); }
static int64_t distance(CUdeviceptr value, CUdeviceptr address) { return static_cast<int64_t>(address - value); }
static int64_t isAny(void* value, CUdeviceptr) { return value != nullptr; }

static void sayPointer(CUdeviceptr address) {
  sayAttribute("CONTEXT", CU_POINTER_ATTRIBUTE_CONTEXT, address, isAny);
  sayAttribute("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address, number);
  sayAttribute("DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address, distance);
  sayAttribute("HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER, address, distance);
  sayAttribute("SYNC_MEMOPS", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address, number);
  sayAttribute("IS_MANAGED", CU_POINTER_ATTRIBUTE_IS_MANAGED, address, number);
  sayAttribute("DEVICE_ORDINAL", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, number);
  sayAttribute("IS_LEGACY_CUDA_IPC_CAPABLE", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address, number);
  sayAttribute("RANGE_START_ADDR", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address, distance);
  sayAttribute("RANGE_SIZE", CU_POINTER_ATTRIBUTE_RANGE_SIZE, address, large);
  sayAttribute("MAPPED", CU_POINTER_ATTRIBUTE_MAPPED, address, number);
  sayAttribute("ALLOWED_HANDLE_TYPES", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address, large);
  sayAttribute("ACCESS_FLAGS", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address, number);
  sayAttribute("MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address, isAny);
  sayAttribute("MAPPING_SIZE", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, address, large);
  sayAttribute("MAPPING_BASE_ADDR", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, address, distance);
  CUdeviceptr start = 0;
  size_t bytes = 0;
  if (SAYCU(cuMemGetAddressRange, &start, &bytes, address) == CUDA_SUCCESS) {
    VALUE(bytes);
  }
  cudaPointerAttributes attributes{};
  SAY(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(address)));
  VALUE(attributes.type);
  VALUE(attributes.device);
  VALUE(attributes.devicePointer != nullptr);
  VALUE(attributes.hostPointer != nullptr);
  CUdeviceptr devices = 0;
  SAYCU(cuMemHostGetDevicePointer, &devices, reinterpret_cast<void*>(address), 0);
  unsigned flags = 0;
  SAYCU(cuMemHostGetFlags, &flags, reinterpret_cast<void*>(address));
  VALUE(flags);
}

// By who has access; the last `piece` is reserved but not mapped.
static void sayPointers(CUmemLocation location) {
  CUdeviceptr base = mapped(location, 2 * piece, 3 * piece);
  std::printf("%s: nobody\n", currentSection);
  sayPointer(base + piece);
  const bool isHosts = location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  for (CUmemLocation user : {onHost, onDevice}) {
    if (!isHosts && user.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
    CUmemAccessDesc access{user, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    SAYCU(cuMemSetAccess, base, 2 * piece, &access, 1);
    sayPointer(base + piece);
  }
  SAYCU(cuMemFree, base);
  SAYCU(cuMemFreeHost, reinterpret_cast<void*>(base));
  SAYCU(cuMemHostRegister, reinterpret_cast<void*>(base), piece, 0);
  Handle handle = 0;
  SAYCU(cuMemRetainAllocationHandle, &handle, reinterpret_cast<void*>(base));
}

SECTION(pointers) {
  CHECK(cudaFree(nullptr));
  sayPointers(onHost);
}

SECTION(pointersToDevice) {
  CHECK(cudaFree(nullptr));
  sayPointers(onDevice);
}

SECTION(copies) {
  CHECK(cudaFree(nullptr));
  CUdeviceptr base = mapped(onHost, piece, 2 * piece), other = 0;
  SAYCU(cuMemAlloc, &other, piece);
  unsigned words[4] = {1, 2, 3, 4}, back[4] = {};
  CUmemAccessDesc hosts{onHost, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}, devices{onDevice, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  SAYCU(cuMemSetAccess, base, piece, &hosts, 1);
  SAYCU(cuMemcpyHtoD, base, words, sizeof words);
  SAYCU(cuMemcpyDtoH, back, base, sizeof back);
  VALUE(back[3]);
  SAYCU(cuMemsetD32, base, 9, 2);
  SAYCU(cuMemcpyDtoD, other, base, 16);
  SAYCU(cuMemSetAccess, base, piece, &devices, 1);
  for (int kind = 0; kind < 5; ++kind) {
    VALUE(kind);
    SAY(cudaMemcpy(reinterpret_cast<void*>(base), words, sizeof words, cudaMemcpyKind(kind)));
    SAY(cudaMemcpy(back, reinterpret_cast<void*>(base), sizeof words, cudaMemcpyKind(kind)));
    SAY(cudaMemcpy(reinterpret_cast<void*>(other), reinterpret_cast<void*>(base), sizeof words, cudaMemcpyKind(kind)));
    SAY(cudaMemcpy(reinterpret_cast<void*>(base), reinterpret_cast<void*>(other), sizeof words, cudaMemcpyKind(kind)));
  }
  SAYCU(cuMemsetD32, base, 9, 2);
  SAYCU(cuMemcpyDtoH, back, base, sizeof back);
  VALUE(back[0]);
  VALUE(back[3]);
  SAYCU(cuMemcpy, other, base, 8);
  SAYCU(cuMemcpyDtoD, base + 8, other, 8);
  SAYCU(cuMemcpyDtoH, back, base, sizeof back);
  VALUE(back[3]);
  SAYCU(cuMemcpyDtoH, back, base + piece - 8, 16);
  SAYCU(cuMemcpyDtoH, back, base + piece, 16);
  SAYCU(cuMemsetD32, base + piece - 8, 9, 4);
}
