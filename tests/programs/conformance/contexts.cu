// Devices, contexts, limits and settings of the process.
#include "conformance.h"

SECTION(devices) {
  int device = 9, value = 9;
  SAY(cudaSetDevice(-1));
  SAY(cudaSetDevice(99));
  SAY(cudaGetDevice(&device));
  VALUE(device);
  SAY(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  VALUE(value);
  SAY(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0));
  SAY(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
  SAY(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
  cudaDeviceProp properties{};
  SAY(cudaGetDeviceProperties(&properties, 99));
  SAY(cudaGetDeviceProperties(nullptr, 0));
  SAY(cudaChooseDevice(&device, &properties));
  int can = 9;
  SAY(cudaDeviceCanAccessPeer(&can, 0, 0));
  VALUE(can);
  SAY(cudaDeviceCanAccessPeer(&can, 0, 99));
  SAY(cudaDeviceEnablePeerAccess(0, 0));
  SAY(cudaDeviceEnablePeerAccess(99, 0));
  SAY(cudaDeviceDisablePeerAccess(0));
  SAY(cudaDeviceDisablePeerAccess(99));
  char name[16] = "";
  SAY(cudaDeviceGetPCIBusId(name, 4, 0));
  SAY(cudaDeviceGetByPCIBusId(&device, "nonsense"));
  SAY(cudaSetDeviceFlags(0x1000));
  unsigned flags = 77;
  SAY(cudaGetDeviceFlags(&flags));
  VALUE(flags);
  SAY(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  SAY(cudaGetDeviceFlags(&flags));
  VALUE(flags);
  SAY(cudaDeviceReset());
  SAY(cudaGetDeviceFlags(&flags));
  VALUE(flags);
  SAYCU(cuInit, 1);
  CUdevice number = 9;
  SAYCU(cuDeviceGet, &number, 0);
  SAYCU(cuDeviceGet, &number, 99);
  SAYCU(cuDeviceGet, &number, -1);
  SAYCU(cuDeviceGetCount, nullptr);
}

SECTION(limits) {
  for (auto limit : {cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitMaxL2FetchGranularity}) {
    size_t value = 7;
    VALUE(limit);
    SAY(cudaDeviceGetLimit(&value, limit));
    VALUE(value);
  }
  size_t value = 0;
  int cacheBytes = 1;
  CHECK(cudaDeviceGetAttribute(&cacheBytes, cudaDevAttrL2CacheSize, 0));
  SAY(cudaDeviceGetLimit(&value, cudaLimitPersistingL2CacheSize));
  VALUE(16 * value / static_cast<size_t>(cacheBytes));
  SAY(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  SAY(cudaDeviceGetLimit(&value, cudaLimitStackSize));
  VALUE(value);
  SAY(cudaDeviceSetLimit(cudaLimitStackSize, size_t{1} << 40));
  SAY(cudaDeviceSetLimit(static_cast<cudaLimit>(77), 1));
  SAY(cudaDeviceGetLimit(&value, static_cast<cudaLimit>(77)));
  SAY(cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
  cudaFuncCache cache{};
  SAY(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  SAY(cudaDeviceGetCacheConfig(&cache));
  VALUE(cache);
  SAY(cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(7)));
}

SECTION(contexts) {
  CUcontext first = nullptr, second = nullptr, got = nullptr;
  unsigned flags = 77, version = 77;
  int active = 9;
  SAYCU(cuInit, 0);
  SAYCU(cuCtxGetCurrent, &got);
  VALUE(got != nullptr);
  SAYCU(cuMemFree, 0);
  SAYCU(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  VALUE(active);
  SAYCU(cuDevicePrimaryCtxSetFlags, 0, CU_CTX_SCHED_YIELD);
  SAYCU(cuDevicePrimaryCtxSetFlags, 0, 0x1000);
  SAYCU(cuDevicePrimaryCtxRetain, &first, 0);
  SAYCU(cuDevicePrimaryCtxRetain, &second, 0);
  VALUE(first == second);
  SAYCU(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  VALUE(active);
  VALUE(flags);
  SAYCU(cuCtxPushCurrent, first);
  SAYCU(cuCtxPushCurrent, nullptr);
  SAYCU(cuCtxGetApiVersion, first, &version);
  SAYCU(cuCtxGetFlags, &flags);
  VALUE(flags);
  SAYCU(cuCtxCreate, &second, nullptr, 0x1000, 0);
  SAYCU(cuCtxCreate, &second, nullptr, 0, 99);
  SAYCU(cuCtxCreate, &second, nullptr, 0, 0);
  SAYCU(cuCtxGetCurrent, &got);
  VALUE(got == second);
  SAYCU(cuCtxPopCurrent, &got);
  VALUE(got == second);
  SAYCU(cuCtxGetCurrent, &got);
  VALUE(got == first);
  SAYCU(cuCtxSetCurrent, second);
  SAYCU(cuCtxDestroy, second);
  SAYCU(cuCtxGetCurrent, &got);
  VALUE(got == nullptr);
  SAYCU(cuCtxPopCurrent, &got);
  SAYCU(cuCtxPopCurrent, &got);
  SAYCU(cuCtxDestroy, nullptr);
  SAYCU(cuDevicePrimaryCtxRelease, 0);
  SAYCU(cuDevicePrimaryCtxRelease, 0);
  SAYCU(cuDevicePrimaryCtxRelease, 0);
  SAYCU(cuDevicePrimaryCtxReset, 0);
}

SECTION(resets) {
  int* memory = nullptr;
  cudaStream_t stream;
  CHECK(cudaMalloc(&memory, 16));
  CHECK(cudaStreamCreate(&stream));
  SAY(cudaDeviceReset());
  SAY(cudaFree(memory));
  SAY(cudaMalloc(&memory, 16));
  SAY(cudaMemset(memory, 0, 16));
  SAY(cudaDeviceSynchronize());
}

SECTION(versions) {
  int runtime = 0;
  SAY(cudaRuntimeGetVersion(&runtime));
  VALUE(runtime);
  SAY(cudaRuntimeGetVersion(nullptr));
  SAY(cudaDriverGetVersion(nullptr));
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  SAY(cudaGetDriverEntryPointByVersion("cuNothingOfTheKind", &entry, 13000, cudaEnableDefault, &found));
  VALUE(found);
  VALUE(entry != nullptr);
  SAY(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 1000, cudaEnableDefault, &found));
  VALUE(found);
  SAY(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 13000, 0x100, &found));
  std::printf("%s: %s, %s\n", currentSection, cudaGetErrorName(static_cast<cudaError_t>(12345)), cudaGetErrorString(static_cast<cudaError_t>(12345)));
}
