// Memory: allocation, copies, fills, pointer attributes, registration, pools.
#include <cstring>

#include "conformance.h"

__device__ int variable[4];
__constant__ int constant[4];

SECTION(allocations) {
  void* memory = nullptr;
  SAY(cudaMalloc(nullptr, 16));
  SAY(cudaMalloc(&memory, 0));
  VALUE(memory != nullptr);
  SAY(cudaMalloc(&memory, size_t{1} << 50));
  SAY(cudaPeekAtLastError());
  SAY(cudaGetLastError());
  SAY(cudaGetLastError());
  SAY(cudaMalloc(&memory, 1000));
  SAY(cudaFree(static_cast<char*>(memory) + 4));
  SAY(cudaFree(memory));
  SAY(cudaFree(memory));
  SAY(cudaFree(nullptr));
  SAY(cudaFreeHost(nullptr));
  SAY(cudaFree(reinterpret_cast<void*>(16)));
  size_t pitch = 0;
  SAY(cudaMallocPitch(&memory, &pitch, 100, 10));
  VALUE(pitch);
  SAY(cudaMallocPitch(&memory, &pitch, 0, 10));
  SAY(cudaMallocPitch(&memory, nullptr, 100, 10));
  cudaPitchedPtr box{};
  SAY(cudaMalloc3D(&box, make_cudaExtent(100, 5, 3)));
  VALUE(box.pitch);
  VALUE(box.xsize);
  VALUE(box.ysize);
  SAY(cudaHostAlloc(&memory, 100, 0x100));
  SAY(cudaHostAlloc(&memory, 0, 0));
  SAY(cudaHostAlloc(&memory, 100, cudaHostAllocMapped | cudaHostAllocPortable));
  unsigned flags = 0;
  SAY(cudaHostGetFlags(&flags, memory));
  VALUE(flags);
  void* there = nullptr;
  SAY(cudaHostGetDevicePointer(&there, memory, 0));
  VALUE(there == memory);
  SAY(cudaHostGetDevicePointer(&there, memory, 1));
  SAY(cudaHostGetDevicePointer(&there, &flags, 0));
  SAY(cudaHostGetFlags(&flags, &flags));
  SAY(cudaFree(memory));
  SAY(cudaFreeHost(memory));
  SAY(cudaFreeHost(&flags));
}

SECTION(copies) {
  char host[4096] = {};
  char *device = nullptr, *other = nullptr;
  CHECK(cudaMalloc(&device, 1 << 20));
  CHECK(cudaMalloc(&other, 1 << 20));
  SAY(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(nullptr, host, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(device, nullptr, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(device, host, 4, static_cast<cudaMemcpyKind>(7)));
  SAY(cudaMemcpy(device, host, 4, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(host, device, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(host, host + 8, 4, cudaMemcpyHostToHost));
  SAY(cudaMemcpy(device, other, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(device, host, 4, cudaMemcpyDefault));
  SAY(cudaMemcpy(host, device, 4, cudaMemcpyDefault));
  SAY(cudaMemcpy(device, host, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy2D(device, 4, host, 8, 8, 2, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(device, 8, host, 4, 8, 2, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(device, 8, host, 8, 8, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(device, 0, host, 0, 8, 1, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(device, 8, host, 8, 8, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyPeer(device, 0, other, 0, 16));
  SAY(cudaMemcpyPeer(device, 9, other, 0, 16));
  SAY(cudaMemcpyToSymbol(variable, host, 16));
  SAY(cudaMemcpyToSymbol(variable, host, 17));
  SAY(cudaMemcpyToSymbol(variable, host, 8, 12));
  SAY(cudaMemcpyToSymbol(constant, host, 16));
  SAY(cudaMemcpyToSymbol(host, host, 4));
  SAY(cudaMemcpyFromSymbol(host, variable, 4, 12));
  SAY(cudaMemcpyFromSymbol(host, variable, 4, 13));
  size_t size = 0;
  SAY(cudaGetSymbolSize(&size, constant));
  VALUE(size);
  void* address = nullptr;
  SAY(cudaGetSymbolAddress(&address, host));
  SAY(cudaGetSymbolAddress(&address, variable));
  SAY(cudaMemset(device, 1, 0));
  SAY(cudaMemset(nullptr, 1, 4));
  SAY(cudaMemset(nullptr, 1, 0));
  SAY(cudaMemset2D(device, 4, 0, 8, 2));
  SAY(cudaMemset2D(device, 8, 0, 8, 2));
  SAY(cudaMemset(host, 0, 4));
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}

SECTION(driverCopies) {
  CHECK(cudaFree(nullptr));
  char host[256] = {};
  CUdeviceptr device = 0;
  SAYCU(cuMemAlloc, &device, 0);
  SAYCU(cuMemAlloc, nullptr, 16);
  SAYCU(cuMemAlloc, &device, 4096);
  SAYCU(cuMemcpyHtoD, device, host, 16);
  SAYCU(cuMemcpyHtoD, 0, host, 16);
  SAYCU(cuMemcpyHtoD, device + 4090, host, 16);
  SAYCU(cuMemcpyDtoH, nullptr, device, 16);
  SAYCU(cuMemsetD32, device + 2, 0, 4);
  SAYCU(cuMemsetD32, device, 0, 4);
  SAYCU(cuMemsetD2D32, device, 6, 0, 1, 2);
  SAYCU(cuMemsetD16, device + 1, 0, 4);
  CUDA_MEMCPY2D copy{};
  SAYCU(cuMemcpy2D, &copy);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.WidthInBytes = 16;
  copy.Height = 2;
  copy.dstPitch = 8;
  copy.srcPitch = 16;
  SAYCU(cuMemcpy2D, &copy);
  copy.dstPitch = 16;
  SAYCU(cuMemcpy2D, &copy);
  copy.dstMemoryType = static_cast<CUmemorytype>(77);
  SAYCU(cuMemcpy2D, &copy);
  SAYCU(cuMemcpy2D, nullptr);
  CUdeviceptr base = 0;
  size_t size = 0;
  SAYCU(cuMemGetAddressRange, &base, &size, device + 100);
  VALUE(base == device);
  VALUE(size);
  SAYCU(cuMemGetAddressRange, &base, &size, 16);
  SAYCU(cuMemFree, 0);
  SAYCU(cuMemFree, device + 16);
  SAYCU(cuMemFree, device);
  SAYCU(cuMemFree, device);
}

SECTION(pointers) {
  int local = 0;
  void *device = nullptr, *host = nullptr, *managed = nullptr;
  CHECK(cudaMalloc(&device, 100));
  CHECK(cudaMallocHost(&host, 100));
  CHECK(cudaMallocManaged(&managed, 100));
  for (void* pointer : {static_cast<void*>(&local), device, host, managed, static_cast<void*>(nullptr)}) {
    cudaPointerAttributes attributes{};
    SAY(cudaPointerGetAttributes(&attributes, pointer));
    VALUE(attributes.type);
    VALUE(attributes.device);
    VALUE(attributes.devicePointer == pointer);
    VALUE(attributes.hostPointer == pointer);
    auto address = reinterpret_cast<CUdeviceptr>(pointer);
    unsigned number = 99;
    SAYCU(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    VALUE(number);
    SAYCU(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    SAYCU(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    size_t size = 0;
    SAYCU(cuPointerGetAttribute, &size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
    VALUE(size);
    SAYCU(cuPointerGetAttribute, &number, static_cast<CUpointer_attribute>(999), address);
  }
  SAY(cudaPointerGetAttributes(nullptr, device));
}

SECTION(registration) {
  auto* memory = static_cast<char*>(aligned_alloc(4096, 16384));
  std::memset(memory, 0, 16384);
  SAY(cudaHostRegister(nullptr, 4096, 0));
  SAY(cudaHostRegister(memory, 0, 0));
  SAY(cudaHostRegister(memory, 4096, 0x1000));
  SAY(cudaHostRegister(memory, 8192, cudaHostRegisterMapped));
  SAY(cudaHostRegister(memory, 8192, cudaHostRegisterMapped));
  SAY(cudaHostRegister(memory + 4096, 8192, cudaHostRegisterMapped));
  SAY(cudaHostUnregister(memory + 4096));
  SAY(cudaHostUnregister(memory));
  SAY(cudaHostUnregister(memory));
  SAY(cudaHostUnregister(nullptr));
}

SECTION(pools) {
  void* memory = nullptr;
  cudaMemPool_t pool = nullptr, made = nullptr;
  SAY(cudaDeviceGetDefaultMemPool(&pool, 0));
  SAY(cudaDeviceGetDefaultMemPool(&pool, 9));
  SAY(cudaDeviceGetMemPool(&made, 0));
  VALUE(made == pool);
  SAY(cudaMallocAsync(&memory, 0, nullptr));
  SAY(cudaMallocAsync(&memory, 1000, nullptr));
  SAY(cudaFreeAsync(memory, nullptr));
  SAY(cudaFreeAsync(nullptr, nullptr));
  SAY(cudaStreamSynchronize(nullptr));
  cudaMemPoolProps properties{};
  SAY(cudaMemPoolCreate(&made, &properties));
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 9};
  SAY(cudaMemPoolCreate(&made, &properties));
  properties.location.id = 0;
  SAY(cudaMemPoolCreate(&made, &properties));
  SAY(cudaMallocFromPoolAsync(&memory, 1 << 20, made, nullptr));
  uint64_t value = 0;
  SAY(cudaMemPoolGetAttribute(made, cudaMemPoolAttrUsedMemCurrent, &value));
  VALUE(value);
  SAY(cudaMemPoolGetAttribute(made, cudaMemPoolAttrReleaseThreshold, &value));
  VALUE(value);
  value = 1 << 24;
  SAY(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &value));
  SAY(cudaMemPoolSetAttribute(made, cudaMemPoolAttrUsedMemCurrent, &value));
  SAY(cudaMemPoolSetAttribute(made, static_cast<cudaMemPoolAttr>(77), &value));
  SAY(cudaMemPoolGetAttribute(made, static_cast<cudaMemPoolAttr>(77), &value));
  SAY(cudaFree(memory));
  SAY(cudaFree(memory));
  SAY(cudaMemPoolTrimTo(made, 0));
  SAY(cudaMemPoolGetAttribute(made, cudaMemPoolAttrReservedMemCurrent, &value));
  VALUE(value);
  SAY(cudaDeviceSetMemPool(0, made));
  SAY(cudaMemPoolDestroy(made));
  SAY(cudaMemPoolDestroy(pool));
  SAY(cudaDeviceGetMemPool(&made, 0));
  VALUE(made == pool);
}
