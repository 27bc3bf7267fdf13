// Two devices that can access each other's memory: results of enabling access, and copies, fills, kernels and pools across devices, also
// with memory that only one of them may access. A machine with fewer devices says so.
#include "conformance.h"

static constexpr size_t bytes = 1 << 20;

__global__ void addTo(unsigned* to, const unsigned* from) { *to += *from; }
__global__ void countUp(unsigned* counter) { atomicAdd_system(counter, 1u); }

static void* memoryOn(int device) {
  void* memory = nullptr;
  CHECK(cudaSetDevice(device));
  CHECK(cudaMalloc(&memory, bytes));
  CHECK(cudaMemset(memory, device + 1, bytes));
  CHECK(cudaDeviceSynchronize());
  return memory;
}

static unsigned firstOf(const void* memory) {
  unsigned word = 0;
  CHECK(cudaMemcpy(&word, memory, sizeof word, cudaMemcpyDefault));
  return word;
}

SECTION(enabling) {
  int can = -1;
  SAY(cudaDeviceCanAccessPeer(&can, 0, 1));
  VALUE(can);
  SAY(cudaDeviceCanAccessPeer(&can, 0, 0));
  VALUE(can);
  SAY(cudaDeviceCanAccessPeer(&can, 0, 99));
  SAY(cudaDeviceCanAccessPeer(&can, -1, 1));
  SAY(cudaDeviceCanAccessPeer(nullptr, 0, 1));
  CHECK(cudaSetDevice(0));
  SAY(cudaDeviceDisablePeerAccess(1));
  SAY(cudaDeviceEnablePeerAccess(1, 1));
  SAY(cudaDeviceEnablePeerAccess(0, 0));
  SAY(cudaDeviceEnablePeerAccess(99, 0));
  SAY(cudaDeviceEnablePeerAccess(1, 0));
  SAY(cudaDeviceEnablePeerAccess(1, 0));
  SAY(cudaGetLastError());
  SAY(cudaDeviceDisablePeerAccess(0));
  SAY(cudaDeviceDisablePeerAccess(99));
  SAY(cudaDeviceDisablePeerAccess(1));
  SAY(cudaDeviceDisablePeerAccess(1));
}

SECTION(contexts) {
  CUcontext first = nullptr, second = nullptr;
  CHECK(cudaSetDevice(1));
  CHECK(cudaFree(nullptr));
  CALL(cuCtxGetCurrent, &second);
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(nullptr));
  CALL(cuCtxGetCurrent, &first);
  SAYCU(cuCtxEnablePeerAccess, nullptr, 0);
  SAYCU(cuCtxEnablePeerAccess, first, 0);
  SAYCU(cuCtxEnablePeerAccess, second, 5);
  SAYCU(cuCtxEnablePeerAccess, second, 0);
  SAYCU(cuCtxEnablePeerAccess, second, 0);
  SAY(cudaDeviceEnablePeerAccess(1, 0));
  SAYCU(cuCtxDisablePeerAccess, second);
  SAYCU(cuCtxDisablePeerAccess, second);
  SAYCU(cuCtxDisablePeerAccess, nullptr);
  SAY(cudaDeviceDisablePeerAccess(1));
}

SECTION(attributes) {
  int value = -1;
  SAY(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
  VALUE(value);
  SAY(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 0));
  SAY(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 99));
  SAY(cudaDeviceGetP2PAttribute(&value, static_cast<cudaDeviceP2PAttr>(77), 0, 1));
  SAY(cudaDeviceGetP2PAttribute(nullptr, cudaDevP2PAttrAccessSupported, 0, 1));
  SAY(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, 0, 1));
  SAYCU(cuDeviceGetP2PAttribute, &value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 0);
  VALUE(value);
}

SECTION(copies) {
  void *a = memoryOn(0), *b = memoryOn(1);
  CHECK(cudaSetDevice(0));
  SAY(cudaMemcpyPeer(a, 0, b, 1, bytes));
  VALUE(firstOf(a));
  SAY(cudaMemcpyPeer(b, 1, b, 1, bytes));
  SAY(cudaMemcpyPeer(a, 0, b, 1, 0));
  SAY(cudaMemcpyPeer(a, 99, b, 1, bytes));
  SAY(cudaMemcpyPeer(nullptr, 0, b, 1, bytes));
  SAY(cudaMemcpyPeerAsync(a, 0, b, 1, bytes, nullptr));
  SAY(cudaMemset(a, 9, bytes));
  SAY(cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice));
  VALUE(firstOf(b));
  SAY(cudaMemcpy(b, a, bytes, cudaMemcpyDefault));
  SAY(cudaMemset(b, 5, bytes));
  SAY(cudaDeviceSynchronize());
  VALUE(firstOf(b));
  SAY(cudaMemcpy2D(b, 1024, a, 512, 512, 100, cudaMemcpyDeviceToDevice));
  cudaMemcpy3DPeerParms box{};
  box.srcPtr = make_cudaPitchedPtr(b, 1024, 1024, 16);
  box.dstPtr = make_cudaPitchedPtr(a, 1024, 1024, 16);
  box.srcDevice = 1;
  box.dstDevice = 0;
  box.extent = make_cudaExtent(100, 16, 4);
  SAY(cudaMemcpy3DPeer(&box));
  box.srcDevice = 99;
  SAY(cudaMemcpy3DPeer(&box));
  SAY(cudaMemcpy3DPeer(nullptr));
}

SECTION(kernels) {
  auto *a = static_cast<unsigned*>(memoryOn(0)), *b = static_cast<unsigned*>(memoryOn(1));
  CHECK(cudaSetDevice(0));
  SAY(cudaDeviceEnablePeerAccess(1, 0));
  addTo<<<1, 1>>>(a, b);
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
  VALUE(firstOf(a));
  countUp<<<4, 32>>>(b);
  SAY(cudaDeviceSynchronize());
  VALUE(firstOf(b) - 0x02020202u);
  void* later = nullptr;
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&later, bytes));
  CHECK(cudaMemset(later, 0, bytes));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(0));
  countUp<<<1, 32>>>(static_cast<unsigned*>(later));
  SAY(cudaDeviceSynchronize());
  VALUE(firstOf(later));
  cudaPointerAttributes attributes{};
  SAY(cudaPointerGetAttributes(&attributes, b));
  VALUE(attributes.device);
  VALUE(attributes.devicePointer == b);
}

SECTION(streams) {
  cudaStream_t there = nullptr;
  cudaEvent_t event = nullptr, timed = nullptr, here = nullptr;
  void* b = memoryOn(1);
  CHECK(cudaStreamCreate(&there));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaEventCreate(&timed));
  CHECK(cudaSetDevice(0));
  CHECK(cudaEventCreate(&here));
  SAY(cudaMemsetAsync(b, 1, bytes, there));
  addTo<<<1, 1, 0, there>>>(static_cast<unsigned*>(b), static_cast<unsigned*>(b));
  SAY(cudaGetLastError());
  SAY(cudaEventRecord(event, there));
  SAY(cudaEventRecord(here, there));
  SAY(cudaEventRecord(event, nullptr));
  SAY(cudaStreamWaitEvent(nullptr, event, 0));
  SAY(cudaStreamSynchronize(there));
  SAY(cudaEventRecord(here, nullptr));
  SAY(cudaEventRecord(timed, there));
  SAY(cudaDeviceSynchronize());
  SAY(cudaEventSynchronize(timed));
  float milliseconds = 0;
  SAY(cudaEventElapsedTime(&milliseconds, here, timed));
  SAY(cudaStreamDestroy(there));
  int device = -1;
  SAY(cudaStreamGetDevice(nullptr, &device));
  VALUE(device);
}

SECTION(pools) {
  cudaMemPool_t pool = nullptr, own = nullptr;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 1};
  CHECK(cudaSetDevice(0));
  SAY(cudaMemPoolCreate(&pool, &properties));
  cudaMemAccessDesc access{{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite};
  cudaMemAccessFlags flags{};
  SAY(cudaMemPoolGetAccess(&flags, pool, &access.location));
  VALUE(flags);
  SAY(cudaMemPoolSetAccess(pool, &access, 1));
  SAY(cudaMemPoolGetAccess(&flags, pool, &access.location));
  VALUE(flags);
  access.flags = cudaMemAccessFlagsProtRead;
  SAY(cudaMemPoolSetAccess(pool, &access, 1));
  access.flags = cudaMemAccessFlagsProtReadWrite;
  access.location.id = 99;
  SAY(cudaMemPoolSetAccess(pool, &access, 1));
  access.location.id = 1;
  access.flags = cudaMemAccessFlagsProtNone;
  SAY(cudaMemPoolSetAccess(pool, &access, 1));
  void* memory = nullptr;
  SAY(cudaMallocFromPoolAsync(&memory, bytes, pool, nullptr));
  SAY(cudaMemsetAsync(memory, 3, bytes, nullptr));
  SAY(cudaDeviceSynchronize());
  VALUE(firstOf(memory));
  SAY(cudaFreeAsync(memory, nullptr));
  SAY(cudaDeviceSetMemPool(0, pool));
  SAY(cudaDeviceGetDefaultMemPool(&own, 1));
  SAY(cudaDeviceSetMemPool(1, own));
  SAY(cudaMemPoolDestroy(pool));
}

SECTION(mappings) {
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(nullptr));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  constexpr size_t size = 2 << 20;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  SAYCU(cuMemCreate, &handle, size, &properties, 0);
  SAYCU(cuMemAddressReserve, &address, size, 0, 0, 0);
  SAYCU(cuMemMap, address, size, 0, handle, 0);
  CUmemAccessDesc access[2]{{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                            {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  SAYCU(cuMemSetAccess, address, size, access, 1);
  SAY(cudaMemset(reinterpret_cast<void*>(address), 4, size));
  SAY(cudaDeviceSynchronize());
  VALUE(firstOf(reinterpret_cast<void*>(address)));
  SAYCU(cuMemSetAccess, address, size, access, 2);
  unsigned long long flags = 0;
  SAYCU(cuMemGetAccess, &flags, &access[0].location, address);
  VALUE(flags);
  access[1].location.id = 99;
  SAYCU(cuMemSetAccess, address, size, access, 2);
  SAYCU(cuMemUnmap, address, size);
  SAYCU(cuMemRelease, handle);
  SAYCU(cuMemAddressFree, address, size);
}
