// Memory of host pools and of managed pools: its attributes, who may access it, how it is freed, and when it is reused.
#include "pools.h"

__global__ void add(int* numbers, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) numbers[i] += i;
}

namespace {

void setAccess(CUmemoryPool pool) {
  for (CUmemLocationType place : allPlaces)
    for (int flags : {0, 1, 3}) {
      CUmemAccessDesc access{{place, 0}, static_cast<CUmemAccess_flags>(flags)};
      sayCase("set access: place, flags", {place, flags}, DRIVER(cuMemPoolSetAccess)(pool, &access, 1));
    }
  CUmemAccessDesc nowhere{{device, 99}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  SAYCU(cuMemPoolSetAccess, pool, &nowhere, 1);
  SAYCU(cuMemPoolSetAccess, pool, nullptr, 0);
}

void giveAccess(CUmemoryPool pool) {
  CUmemAccessDesc access{{device, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  SAYCU(cuMemPoolSetAccess, pool, &access, 1);
}

template <typename T>
void sayPointer(const char* what, CUpointer_attribute which, CUdeviceptr address, CUmemoryPool pool, CUdeviceptr first) {
  T value{};
  CUresult result = DRIVER(cuPointerGetAttribute)(&value, which, address);
  if (result != CUDA_SUCCESS) return sayCase(what, {}, result);
  const uint64_t number = static_cast<uint64_t>(value);
  if (number == reinterpret_cast<uint64_t>(pool)) std::printf("%s: %s is the pool\n", currentSection, what);
  else if (number == first) std::printf("%s: %s is the first\n", currentSection, what);
  else if (number == address) std::printf("%s: %s is the address\n", currentSection, what);
  else if (number > uint64_t{1} << 32) std::printf("%s: %s is large\n", currentSection, what);
  else sayValue(what, static_cast<int64_t>(number));
}
#define POINTER(type, name) sayPointer<type>(#name, CU_POINTER_ATTRIBUTE_##name, address, pool, first)

void sayPointers(CUdeviceptr first, CUdeviceptr address, CUmemoryPool pool) {
  POINTER(uint64_t, CONTEXT);
  POINTER(unsigned, MEMORY_TYPE);
  POINTER(uint64_t, DEVICE_POINTER);
  POINTER(uint64_t, HOST_POINTER);
  POINTER(unsigned, SYNC_MEMOPS);
  POINTER(unsigned, IS_MANAGED);
  POINTER(int, DEVICE_ORDINAL);
  POINTER(unsigned, IS_LEGACY_CUDA_IPC_CAPABLE);
  POINTER(uint64_t, RANGE_START_ADDR);
  POINTER(uint64_t, RANGE_SIZE);
  POINTER(unsigned, MAPPED);
  POINTER(uint64_t, ALLOWED_HANDLE_TYPES);
  POINTER(unsigned, IS_GPU_DIRECT_RDMA_CAPABLE);
  POINTER(unsigned, ACCESS_FLAGS);
  POINTER(uint64_t, MEMPOOL_HANDLE);
  cudaPointerAttributes attributes{};
  auto* pointer = reinterpret_cast<void*>(address);
  SAY(cudaPointerGetAttributes(&attributes, pointer));
  VALUE(attributes.type);
  VALUE(attributes.device);
  VALUE(attributes.devicePointer == pointer);
  VALUE(attributes.hostPointer == pointer);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  SAYCU(cuMemGetAddressRange, &base, &bytes, address);
  VALUE(base == first);
  VALUE(bytes);
  unsigned flags = 77;
  SAYCU(cuMemHostGetFlags, &flags, pointer);
  VALUE(flags);
  SAYCU(cuMemHostGetDevicePointer, &base, pointer, 0);
}

void sayRange(CUdeviceptr address, size_t bytes) {
  for (int which = 1; which <= 8; ++which) {
    int value[4] = {77, 77, 77, 77};
    const size_t size = which == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY ? sizeof value : sizeof *value;
    CUresult result = DRIVER(cuMemRangeGetAttribute)(value, size, static_cast<CUmem_range_attribute>(which), address, bytes);
    sayCase("range attribute, value", {which, value[0]}, result);
  }
}

void move(CUdeviceptr address, size_t bytes) {
  for (CUmemLocationType place : allPlaces)
    for (int id : {0, 99})
      sayCase("prefetch: place, id", {place, id},
              DRIVER(cuMemPrefetchAsync)(address, bytes, CUmemLocation{place, id}, 0, nullptr));
  for (int advice = 1; advice <= 6; ++advice)
    for (CUmemLocationType place : {device, host})
      sayCase("advice, place", {advice, place},
              DRIVER(cuMemAdvise)(address, bytes, static_cast<CUmem_advise>(advice), CUmemLocation{place, 0}));
  SAYCU(cuStreamAttachMemAsync, nullptr, address, 0, CU_MEM_ATTACH_GLOBAL);
  SAYCU(cuStreamAttachMemAsync, nullptr, address, 0, CU_MEM_ATTACH_HOST);
  SAY(cudaDeviceSynchronize());
}

// Uses memory on the host and, with access, on the device.
void useMemory(CUdeviceptr address, bool isHosts) {
  auto* numbers = reinterpret_cast<int*>(address);
  constexpr int count = 1000;
  std::vector<int> zeros(count), got(count);
  SAYCU(cuMemsetD32Async, address, 5, count, nullptr);
  SAY(cudaDeviceSynchronize());
  if (isHosts)
    for (int i = 0; i < count; ++i) numbers[i] += 2;
  add<<<1, 128>>>(numbers, count);
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
  if (isHosts) VALUE(numbers[999]);
  SAY(cudaMemcpyAsync(got.data(), numbers, count * sizeof(int), cudaMemcpyDefault, nullptr));
  SAY(cudaStreamSynchronize(nullptr));
  VALUE(got[998]);
  SAY(cudaMemcpyAsync(got.data(), numbers, count * sizeof(int), cudaMemcpyDeviceToHost, nullptr));
  SAY(cudaMemcpyAsync(numbers, zeros.data(), count * sizeof(int), cudaMemcpyHostToDevice, nullptr));
  SAY(cudaMemcpyAsync(numbers, zeros.data(), count * sizeof(int), cudaMemcpyHostToHost, nullptr));
  SAY(cudaMemcpyAsync(numbers, numbers + 500, 500 * sizeof(int), cudaMemcpyDeviceToDevice, nullptr));
  SAYCU(cuMemcpyDtoH, got.data(), address, 16);
  SAYCU(cuMemcpyHtoD, address, got.data(), 16);
  SAY(cudaMemcpy2D(numbers, 32, got.data(), 32, 16, 2, cudaMemcpyHostToDevice));
  SAY(cudaDeviceSynchronize());
  SAY(cudaGetLastError());
}

// After calls that free without a stream, the driver still counts the memory as used.
void freeOtherwise(CUmemoryPool pool) {
  CUdeviceptr address = 0;
  const size_t bytes = 1 << 20;
  auto allocate = [&] {
    SAYCU(cuMemAllocFromPoolAsync, &address, bytes, pool, nullptr);
    SAY(cudaDeviceSynchronize());
  };
  allocate();
  SAYCU(cuMemFreeHost, reinterpret_cast<void*>(address));
  SAYCU(cuMemFreeAsync, address + 256, nullptr);
  SAYCU(cuMemFree, address + 256);
  SAYCU(cuMemHostRegister, reinterpret_cast<void*>(address), 4096, 0);
  SAYCU(cuMemFree, address);
  SAYCU(cuMemFree, address);
  SAYCU(cuMemFreeAsync, address, nullptr);
  allocate();
  SAY(cudaFree(reinterpret_cast<void*>(address)));
  SAYCU(cuMemFreeAsync, address, nullptr);
  allocate();
  SAY(cudaFreeAsync(reinterpret_cast<void*>(address), nullptr));
  SAY(cudaFreeAsync(reinterpret_cast<void*>(address), nullptr));
  SAYCU(cuMemFreeAsync, 0, nullptr);
  SAY(cudaDeviceSynchronize());
}

// Reuse in the stream of the free, in an independent stream, and in that stream behind the free.
void reuse(CUmemoryPool pool) {
  CUstream one = nullptr, two = nullptr;
  CALL(cuStreamCreate, &one, CU_STREAM_NON_BLOCKING);
  CALL(cuStreamCreate, &two, CU_STREAM_NON_BLOCKING);
  CUdeviceptr address = 0, again = 0, other = 0;
  const size_t bytes = 4 << 20;
  static std::atomic<bool> go{false};
  auto wait = [](void*) {
    while (!go) usleep(100);
  };
  SAYCU(cuMemAllocFromPoolAsync, &address, bytes, pool, one);
  SAYCU(cuLaunchHostFunc, one, wait, nullptr);
  SAYCU(cuMemFreeAsync, address, one);
  SAYCU(cuMemAllocFromPoolAsync, &other, bytes, pool, two);
  VALUE(other == address);
  SAYCU(cuMemAllocFromPoolAsync, &again, bytes, pool, one);
  VALUE(again == address);
  sayAmounts(pool);
  go = true;
  SAYCU(cuMemFreeAsync, again, one);
  SAYCU(cuMemFreeAsync, other, one);
  sayAmounts(pool);
  SAYCU(cuStreamSynchronize, one);
  sayAmounts(pool);
  SAYCU(cuMemAllocFromPoolAsync, &other, bytes, pool, two);
  SAYCU(cuMemFreeAsync, other, two);
  SAY(cudaDeviceSynchronize());
  sayAmounts(pool);
}

void share(CUmemoryPool pool, CUdeviceptr address) {
  int descriptor = -1;
  CUmemPoolPtrExportData data;
  CUipcMemHandle handle;
  SAYCU(cuMemPoolExportToShareableHandle, &descriptor, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  SAYCU(cuMemPoolExportToShareableHandle, &descriptor, pool, CU_MEM_HANDLE_TYPE_NONE, 0);
  SAYCU(cuMemPoolExportToShareableHandle, &descriptor, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0);
  SAYCU(cuMemPoolExportPointer, &data, address);
  SAYCU(cuIpcGetMemHandle, &handle, address);
}

void tryKind(Kind kind) {
  CHECK(cudaFree(nullptr));
  CUmemoryPool pool = create(kind);
  if (pool == nullptr) return;
  sayAttributes(pool);
  CUdeviceptr address = 0, large = 0, huge = 0;
  SAYCU(cuMemAllocFromPoolAsync, &address, 5000, pool, nullptr);
  sayAmounts(pool);
  SAYCU(cuMemAllocFromPoolAsync, &large, (40 << 20) + 1, pool, nullptr);
  sayAmounts(pool);
  SAYCU(cuMemAllocFromPoolAsync, &huge, size_t{1} << 50, pool, nullptr);
  huge = 16;
  SAYCU(cuMemAllocFromPoolAsync, &huge, 0, pool, nullptr);
  VALUE(huge);
  sayAmounts(pool);
  SAYCU(cuMemAllocFromPoolAsync, nullptr, 16, pool, nullptr);
  SAY(cudaDeviceSynchronize());
  VALUE(address % 256);
  sayAccess(pool);
  sayPointers(address, address + 100, pool);
  if (kind.type == pinned && kind.place != device) {
    giveAccess(pool);
    sayAccess(pool);
    sayPointers(address, address, pool);
  }
  if (kind.type == managed) {
    sayRange(address, 4096);
    move(address, 4096);
    sayRange(address, 4096);
  }
  setAccess(pool);
  sayAccess(pool);
  share(pool, address);
  SAYCU(cuMemFreeAsync, large, nullptr);
  SAY(cudaDeviceSynchronize());
  sayAmounts(pool);
  SAYCU(cuMemPoolTrimTo, pool, 0);
  sayAmounts(pool);
  SAYCU(cuMemFreeAsync, address, nullptr);
  SAY(cudaDeviceSynchronize());
  sayAmounts(pool);
  SAYCU(cuMemPoolTrimTo, pool, 0);
  sayAmounts(pool);
  uint64_t value = 0, threshold = 1 << 30;
  SAYCU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value);
  SAYCU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value);
  SAYCU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
  SAYCU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
  SAYCU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value);
  sayAttributes(pool);
  reuse(pool);
  freeOtherwise(pool);
  SAYCU(cuMemAllocFromPoolAsync, &address, 5000, pool, nullptr);
  useMemory(address, kind.type != pinned || kind.place != device);
  SAYCU(cuMemPoolDestroy, pool);
  SAY(cudaDeviceSynchronize());
  if (kind.type == managed || kind.place != device) {
    *reinterpret_cast<int*>(address) = 9;
    VALUE(*reinterpret_cast<int*>(address));
  }
  SAYCU(cuMemFreeAsync, address, nullptr);
  SAY(cudaDeviceSynchronize());
  SAY(cudaGetLastError());
}

void sayPreferred(Kind kind) {
  CHECK(cudaFree(nullptr));
  CUmemoryPool pool = create(kind);
  CUdeviceptr address = 0;
  SAYCU(cuMemAllocFromPoolAsync, &address, 5000, pool, nullptr);
  SAY(cudaDeviceSynchronize());
  sayRange(address, 4096);
}

// Natively, at first only the host may access memory of such a pool.
void useWithoutAccess(Kind kind, bool copies) {
  CHECK(cudaFree(nullptr));
  CUmemoryPool pool = create(kind);
  CUdeviceptr address = 0;
  SAYCU(cuMemAllocFromPoolAsync, &address, 4096, pool, nullptr);
  SAY(cudaDeviceSynchronize());
  auto* numbers = reinterpret_cast<int*>(address);
  numbers[5] = 6;
  if (copies) {
    int got = 0;
    SAYCU(cuMemcpyDtoH, &got, address + 20, sizeof got);
    VALUE(got);
    SAYCU(cuMemcpyAsync, address, address + 20, sizeof got, nullptr);
    SAY(cudaDeviceSynchronize());
    SAYCU(cuMemsetD8, address, 1, 64);
  } else {
    add<<<1, 32>>>(numbers, 32);
    SAY(cudaGetLastError());
  }
  SAY(cudaDeviceSynchronize());
}

}  // namespace

SECTION(ofDevice) { tryKind({pinned, device}); }
SECTION(ofHost) { tryKind({pinned, host}); }
SECTION(ofManaged) { tryKind({managed, none}); }
// The others differ from that in their preferred location.
SECTION(ofManagedDevice) { sayPreferred({managed, device}); }
SECTION(ofManagedHost) { sayPreferred({managed, host}); }
SECTION(ofManagedNode) { sayPreferred({managed, numa}); }

SECTION(kernelWithoutAccess) { useWithoutAccess({pinned, host}, false); }
SECTION(copiesWithoutAccess) { useWithoutAccess({pinned, host}, true); }

// Pools that exist by default.
SECTION(currentOnes) {
  CHECK(cudaFree(nullptr));
  for (Kind kind : kinds) {
    if (kind.type == pinned && kind.place == device) continue;
    CUmemLocation location{kind.place, 0};
    CUmemoryPool pool = nullptr;
    CUdeviceptr address = 0, other = 0;
    sayNumbers("type, place", {kind.type, kind.place});
    SAYCU(cuMemGetMemPool, &pool, &location, kind.type);
    SAYCU(cuMemAllocFromPoolAsync, &address, 5000, pool, nullptr);
    SAY(cudaDeviceSynchronize());
    sayPointer<unsigned>("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address, pool, address);
    sayPointer<uint64_t>("MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address, pool, address);
    sayAmounts(pool);
    SAYCU(cuMemFreeAsync, address, nullptr);
    SAYCU(cuMemAllocAsync, &other, 5000, nullptr);
    SAYCU(cuMemFreeAsync, other, nullptr);
    SAY(cudaDeviceSynchronize());
    sayAmounts(pool);
  }
}

// By the runtime's own functions.
SECTION(ofRuntime) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeHost;
  cudaMemPool_t pool = nullptr, now = nullptr;
  int *numbers = nullptr, *again = nullptr;
  SAY(cudaMemPoolCreate(&pool, &properties));
  SAY(cudaMemSetMemPool(&properties.location, cudaMemAllocationTypePinned, pool));
  SAY(cudaMemGetMemPool(&now, &properties.location, cudaMemAllocationTypePinned));
  VALUE(now == pool);
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  SAY(cudaMemPoolSetAccess(pool, &access, 1));
  SAY(cudaMallocFromPoolAsync(&numbers, 4000, pool, nullptr));
  SAY(cudaMemsetAsync(numbers, 0, 4000, nullptr));
  add<<<1, 32>>>(numbers, 1000);
  SAY(cudaStreamSynchronize(nullptr));
  VALUE(numbers[999]);
  SAY(cudaFreeHost(numbers));
  SAY(cudaFreeAsync(numbers, nullptr));
  SAY(cudaMallocFromPoolAsync(&again, 4000, pool, nullptr));
  VALUE(again == numbers);
  SAY(cudaMallocFromPoolAsync(&again, 0, pool, nullptr));
  VALUE(again == nullptr);
  SAY(cudaMallocAsync(&again, 4000, pool, nullptr));
  SAY(cudaMemPoolDestroy(pool));
  SAY(cudaDeviceSynchronize());
  SAY(cudaGetLastError());
}

// Attributes of pools at the calling thread's NUMA node, and of memory of no pool.
SECTION(others) {
  CHECK(cudaFree(nullptr));
  CUmemoryPool pool = create({managed, current}), now = nullptr;
  CUdeviceptr address = 0;
  SAYCU(cuMemAllocFromPoolAsync, &address, 4096, pool, nullptr);
  SAY(cudaDeviceSynchronize());
  sayRange(address, 4096);
  for (CUmemLocationType place : allPlaces) {
    CUmemLocation location{place, 0};
    sayCase("set: place", {place}, DRIVER(cuMemSetMemPool)(&location, managed, pool));
    DRIVER(cuMemGetMemPool)(&now, &location, managed);
    VALUE(now == pool);
  }
  int *plain = nullptr, *ofHost = nullptr;
  unsigned waits = 77;
  CHECK(cudaMallocManaged(&plain, 4096));
  CHECK(cudaMallocHost(&ofHost, 4096));
  SAYCU(cuPointerGetAttribute, &waits, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(plain));
  VALUE(waits);
  sayRange(reinterpret_cast<CUdeviceptr>(plain), 4096);
  SAY(cudaFreeAsync(plain, nullptr));
  SAY(cudaFreeAsync(ofHost, nullptr));
  SAY(cudaDeviceSynchronize());
}

SECTION(reset) {
  CHECK(cudaFree(nullptr));
  CUmemoryPool ofHost = create({pinned, host}), ofManaged = create({managed, none});
  CUdeviceptr address = 0, other = 0;
  SAYCU(cuMemAllocFromPoolAsync, &address, 4096, ofHost, nullptr);
  SAYCU(cuMemAllocFromPoolAsync, &other, 4096, ofManaged, nullptr);
  SAY(cudaDeviceSynchronize());
  *reinterpret_cast<int*>(address) = 3;
  *reinterpret_cast<int*>(other) = 4;
  SAY(cudaDeviceReset());
  SAY(cudaFree(nullptr));
  VALUE(*reinterpret_cast<int*>(address));
  add<<<1, 1>>>(reinterpret_cast<int*>(other), 1);
  SAY(cudaDeviceSynchronize());
  VALUE(*reinterpret_cast<int*>(other));
  unsigned type = 77;
  SAYCU(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  SAYCU(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, other);
  uint64_t used = 0;
  SAYCU(cuMemPoolGetAttribute, ofHost, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
  VALUE(used);
  SAYCU(cuMemPoolGetAttribute, ofManaged, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
  VALUE(used);
  SAYCU(cuMemAllocFromPoolAsync, &address, 4096, ofHost, nullptr);
  SAYCU(cuMemAllocFromPoolAsync, &other, 4096, ofManaged, nullptr);
}
