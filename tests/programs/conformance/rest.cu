// Functions for devices, pools, symbols and occupancy that no other program here covers.
#include <cuda_profiler_api.h>

#include "numbers.h"

__device__ int variable[4] = {10, 20, 30, 40};
__constant__ int constant[4] = {1, 2, 3, 4};
__managed__ int managed[4] = {5, 6, 7, 8};
__global__ void add(int* to, int value) { *to += value; }
__global__ void __launch_bounds__(128) few(int* to) { *to += 1; }

SECTION(profiler) {
  SAY(cudaProfilerStart());
  SAY(cudaProfilerStart());
  SAY(cudaProfilerStop());
  SAY(cudaProfilerStop());
  SAY(cudaGetLastError());
}

SECTION(profilerLast) {
  SAY(cudaProfilerStop());
  SAY(cudaDeviceReset());
  SAY(cudaProfilerStart());
}

SECTION(persistence) {
  SAY(cudaCtxResetPersistingL2Cache());
  size_t bytes = 77;
  SAY(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
  SAY(cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize));
  VALUE(bytes);
  SAY(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20));
  SAY(cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize));
  VALUE(bytes >= 1 << 20);
  SAY(cudaCtxResetPersistingL2Cache());
  SAY(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, ~size_t{0}));
  SAY(cudaGetLastError());
}

SECTION(remoteWrites) {
  int options = -1;
  SAY(cudaDeviceGetAttribute(&options, cudaDevAttrGPUDirectRDMAFlushWritesOptions, 0));
  SAY(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, cudaFlushGPUDirectRDMAWritesToOwner));
  SAY(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                         cudaFlushGPUDirectRDMAWritesToAllDevices));
  SAY(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                         static_cast<cudaFlushGPUDirectRDMAWritesScope>(7)));
  SAY(cudaDeviceFlushGPUDirectRDMAWrites(static_cast<cudaFlushGPUDirectRDMAWritesTarget>(7),
                                         cudaFlushGPUDirectRDMAWritesToOwner));
}

SECTION(atomics) {
  const cudaAtomicOperation all[] = {cudaAtomicOperationIntegerAdd,
                                     cudaAtomicOperationIntegerMin,
                                     cudaAtomicOperationIntegerMax,
                                     cudaAtomicOperationIntegerIncrement,
                                     cudaAtomicOperationIntegerDecrement,
                                     cudaAtomicOperationAnd,
                                     cudaAtomicOperationOr,
                                     cudaAtomicOperationXOR,
                                     cudaAtomicOperationExchange,
                                     cudaAtomicOperationCAS,
                                     cudaAtomicOperationFloatAdd,
                                     cudaAtomicOperationFloatMin,
                                     cudaAtomicOperationFloatMax};
  constexpr unsigned many = sizeof all / sizeof *all;
  unsigned got[many];
  for (unsigned& each : got) each = 77;
  SAY(cudaDeviceGetHostAtomicCapabilities(got, all, many, 0));
  unsigned unknown = 0;
  for (unsigned each : got) unknown |= each & ~127u;
  VALUE(unknown);
  for (unsigned& each : got) each = 77;
  SAY(cudaDeviceGetHostAtomicCapabilities(got, all, 1, 0));
  VALUE(got[1]);
  SAY(cudaDeviceGetHostAtomicCapabilities(got, all, 0, 0));
  SAY(cudaDeviceGetHostAtomicCapabilities(got, all, many, 99));
  SAY(cudaDeviceGetHostAtomicCapabilities(got, all, many, -1));
  const cudaAtomicOperation wrong[] = {cudaAtomicOperationIntegerAdd, static_cast<cudaAtomicOperation>(13)};
  SAY(cudaDeviceGetHostAtomicCapabilities(got, wrong, 2, 0));
  const cudaAtomicOperation negative[] = {static_cast<cudaAtomicOperation>(-1)};
  SAY(cudaDeviceGetHostAtomicCapabilities(got, negative, 1, 0));
  SAY(cudaGetLastError());
}

SECTION(poolsOfPlaces) {
  cudaMemPool_t ofDevice = nullptr, pool = nullptr, made = nullptr;
  CHECK(cudaDeviceGetDefaultMemPool(&ofDevice, 0));
  cudaMemLocation device{cudaMemLocationTypeDevice, 0}, nowhere{cudaMemLocationTypeDevice, 99},
      before{cudaMemLocationTypeDevice, -1};
  SAY(cudaMemGetDefaultMemPool(&pool, &device, cudaMemAllocationTypePinned));
  VALUE(pool == ofDevice);
  SAY(cudaMemGetMemPool(&pool, &device, cudaMemAllocationTypePinned));
  VALUE(pool == ofDevice);
  SAY(cudaMemGetDefaultMemPool(&pool, &nowhere, cudaMemAllocationTypePinned));
  SAY(cudaMemGetMemPool(&pool, &nowhere, cudaMemAllocationTypePinned));
  SAY(cudaMemGetDefaultMemPool(&pool, &before, cudaMemAllocationTypePinned));
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = device;
  CHECK(cudaMemPoolCreate(&made, &properties));
  SAY(cudaMemSetMemPool(&device, cudaMemAllocationTypePinned, made));
  SAY(cudaMemGetMemPool(&pool, &device, cudaMemAllocationTypePinned));
  VALUE(pool == made);
  SAY(cudaDeviceGetMemPool(&pool, 0));
  VALUE(pool == made);
  SAY(cudaMemGetDefaultMemPool(&pool, &device, cudaMemAllocationTypePinned));
  VALUE(pool == ofDevice);
  void* memory = nullptr;
  SAY(cudaMallocAsync(&memory, 1000, nullptr));
  uint64_t used = 0;
  SAY(cudaMemPoolGetAttribute(made, cudaMemPoolAttrUsedMemCurrent, &used));
  VALUE(used >= 1000);
  SAY(cudaFreeAsync(memory, nullptr));
  SAY(cudaMemSetMemPool(&nowhere, cudaMemAllocationTypePinned, made));
  SAY(cudaMemSetMemPool(&device, cudaMemAllocationTypePinned, ofDevice));
  SAY(cudaMemGetMemPool(&pool, &device, cudaMemAllocationTypePinned));
  VALUE(pool == ofDevice);
  SAY(cudaDeviceSetMemPool(0, made));
  SAY(cudaMemGetMemPool(&pool, &device, cudaMemAllocationTypePinned));
  VALUE(pool == made);
  SAY(cudaMemPoolDestroy(made));
  SAY(cudaMemGetMemPool(&pool, &device, cudaMemAllocationTypePinned));
  VALUE(pool == ofDevice);
  SAY(cudaDeviceSynchronize());
  SAY(cudaGetLastError());
}

SECTION(poolsOfWrongTypes) {
  cudaMemPool_t pool = nullptr, ofDevice = nullptr;
  CHECK(cudaDeviceGetDefaultMemPool(&ofDevice, 0));
  for (int type : {0, 2, 99, -1}) {
    cudaMemLocation device{cudaMemLocationTypeDevice, 0};
    VALUE(type);
    SAY(cudaMemGetDefaultMemPool(&pool, &device, static_cast<cudaMemAllocationType>(type)));
    SAY(cudaMemGetMemPool(&pool, &device, static_cast<cudaMemAllocationType>(type)));
    SAY(cudaMemSetMemPool(&device, static_cast<cudaMemAllocationType>(type), ofDevice));
  }
  for (int place : {0, 99, -1}) {
    cudaMemLocation location{static_cast<cudaMemLocationType>(place), 0};
    VALUE(place);
    SAY(cudaMemGetDefaultMemPool(&pool, &location, cudaMemAllocationTypePinned));
    SAY(cudaMemGetMemPool(&pool, &location, cudaMemAllocationTypePinned));
    SAY(cudaMemSetMemPool(&location, cudaMemAllocationTypePinned, ofDevice));
  }
  SAY(cudaGetLastError());
}

// Pools at other locations (pools.cu).
SECTION(poolsOfOthers) {
  cudaMemPool_t pool = nullptr, ofDevice = nullptr;
  CHECK(cudaDeviceGetDefaultMemPool(&ofDevice, 0));
  for (cudaMemLocationType place : {cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma, cudaMemLocationTypeHostNumaCurrent}) {
    cudaMemLocation location{static_cast<cudaMemLocationType>(place), 0};
    VALUE(place);
    SAY(cudaMemGetDefaultMemPool(&pool, &location, cudaMemAllocationTypePinned));
    SAY(cudaMemSetMemPool(&location, cudaMemAllocationTypePinned, ofDevice));
  }
  SAY(cudaGetLastError());
}

SECTION(symbols) {
  int got[4] = {};
  int* words = nullptr;
  cudaStream_t stream;
  CHECK(cudaMalloc(&words, 64));
  CHECK(cudaMemset(words, 0, 64));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  SAY(cudaMemcpyFromSymbolAsync(got, variable, 8, 4, cudaMemcpyDeviceToHost, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(got, 4);
  SAY(cudaMemcpyFromSymbolAsync(words, constant, 16, 0, cudaMemcpyDeviceToDevice, stream));
  SAY(cudaMemcpyFromSymbolAsync(words + 4, managed, 12, 4, cudaMemcpyDefault, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(words, 8);
  SAY(cudaMemcpyToSymbolAsync(variable, words, 12, 4, cudaMemcpyDeviceToDevice, stream));
  SAY(cudaMemcpyFromSymbolAsync(got, variable, 16, 0, cudaMemcpyDefault, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(got, 4);
  SAY(cudaMemcpyFromSymbolAsync(got, variable, 17, 0, cudaMemcpyDeviceToHost, stream));
  SAY(cudaMemcpyFromSymbolAsync(got, variable, 8, 12, cudaMemcpyDeviceToHost, stream));
  SAY(cudaMemcpyFromSymbolAsync(got, variable, 0, 0, cudaMemcpyDeviceToHost, stream));
  SAY(cudaMemcpyFromSymbolAsync(got, variable, 4, 0, cudaMemcpyHostToDevice, stream));
  SAY(cudaMemcpyFromSymbolAsync(got, variable, 4, 0, cudaMemcpyHostToHost, stream));
  SAY(cudaMemcpyFromSymbolAsync(got, variable, 4, 0, static_cast<cudaMemcpyKind>(9), stream));
  SAY(cudaMemcpyFromSymbolAsync(got, got, 4, 0, cudaMemcpyDeviceToHost, stream));
  SAY(cudaMemcpyFromSymbolAsync(nullptr, variable, 4, 0, cudaMemcpyDeviceToHost, stream));
  SAY(cudaMemcpyToSymbolAsync(variable, got, 4, 0, cudaMemcpyDeviceToHost, stream));
  SAY(cudaMemcpyToSymbolAsync(variable, got, 4, 0, cudaMemcpyHostToHost, stream));
  SAY(cudaMemcpyToSymbolAsync(variable, nullptr, 4, 0, cudaMemcpyHostToDevice, stream));
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaGetLastError());
}

// Copies of rows and boxes whose direction contradicts their pointers: host memory declared as the device's, and, one per section, device
// memory declared as the host's.
namespace {

int rows[32], *device, *pinned;

void setUpRows() {
  CHECK(cudaMalloc(&device, sizeof rows));
  CHECK(cudaMallocHost(&pinned, sizeof rows));
  CHECK(cudaMemset(device, 0, sizeof rows));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) rows[i] = pinned[i] = i;
}

cudaError_t copyRows(void* to, const void* from, cudaMemcpyKind kind) { return cudaMemcpy2D(to, 32, from, 32, 16, 2, kind); }
cudaError_t copyBox(void* to, void* from, cudaMemcpyKind kind) {
  cudaMemcpy3DParms box{};
  box.srcPtr = make_cudaPitchedPtr(from, 32, 16, 2);
  box.dstPtr = make_cudaPitchedPtr(to, 32, 16, 2);
  box.extent = make_cudaExtent(16, 2, 1);
  box.kind = kind;
  return cudaMemcpy3D(&box);
}

}  // namespace

SECTION(directions) {
  setUpRows();
  SAY(copyRows(device, rows, cudaMemcpyDeviceToDevice));
  SAY(copyRows(rows, device, cudaMemcpyDeviceToDevice));
  SAY(copyRows(rows, rows + 16, cudaMemcpyDeviceToDevice));
  SAY(copyRows(rows, rows + 16, cudaMemcpyDeviceToHost));
  SAY(copyRows(rows, rows + 16, cudaMemcpyHostToDevice));
  SAY(copyBox(device, rows, cudaMemcpyDeviceToDevice));
  SAY(copyBox(rows, device, cudaMemcpyDeviceToDevice));
  SAY(copyBox(rows, rows + 16, cudaMemcpyDeviceToDevice));
  SAY(copyRows(device, pinned, cudaMemcpyDeviceToDevice));
  SAY(copyRows(pinned, device, cudaMemcpyDeviceToDevice));
  SAY(copyRows(pinned, pinned + 16, cudaMemcpyDeviceToDevice));
  SAY(copyBox(pinned, pinned + 16, cudaMemcpyDeviceToHost));
  SAY(cudaDeviceSynchronize());
  ARRAY(device, 16);
  ARRAY(rows, 16);
  SAY(cudaGetLastError());
}

SECTION(fillsInSpace) {
  char* bytes = nullptr;
  CHECK(cudaMalloc(&bytes, 128));
  CHECK(cudaMemset(bytes, 0, 128));
  SAY(cudaMemset3D(make_cudaPitchedPtr(bytes, 16, 16, 4), 1, make_cudaExtent(3, 2, 2)));
  SAY(cudaDeviceSynchronize());
  ARRAY(bytes, 128);
  SAY(cudaMemset3D(make_cudaPitchedPtr(bytes, 16, 16, 4), 0x1FF, make_cudaExtent(16, 4, 1)));
  SAY(cudaDeviceSynchronize());
  ARRAY(bytes, 128);
}

SECTION(occupancy) {
  auto blocks = [](const void* kernel, int threads, size_t shared, unsigned flags) {
    int count = 77;
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&count, kernel, threads, shared, flags));
    sayNumbers("threads, shared, flags; blocks", {threads, shared, flags, count});
  };
  auto* kernel = reinterpret_cast<const void*>(add);
  blocks(kernel, 1024, 0, cudaOccupancyDefault);
  blocks(kernel, 512, 0, cudaOccupancyDisableCachingOverride);
  blocks(kernel, 128, 40960, cudaOccupancyDefault);
  blocks(kernel, 1, 0, cudaOccupancyDefault);
  blocks(kernel, 0, 0, cudaOccupancyDefault);
  blocks(kernel, -1, 0, cudaOccupancyDefault);
  blocks(kernel, 1025, 0, cudaOccupancyDefault);
  blocks(kernel, 128, size_t{1} << 20, cudaOccupancyDefault);
  blocks(kernel, 128, ~size_t{0}, cudaOccupancyDefault);
  blocks(kernel, 128, 0, 2);
  blocks(kernel, 128, 0, ~0u);
  blocks(reinterpret_cast<const void*>(few), 256, 0, cudaOccupancyDefault);
  blocks(nullptr, 128, 0, cudaOccupancyDefault);
  blocks(variable, 128, 0, cudaOccupancyDefault);
  SAY(cudaGetLastError());
}

// Null for a required pointer: one per section, because the driver may crash.
#define NOTHING(name, call)                                                \
  SECTION(name) {                                                          \
    CHECK(cudaFree(nullptr));                                              \
    [[maybe_unused]] cudaMemPool_t pool = nullptr;                         \
    [[maybe_unused]] cudaMemLocation device{cudaMemLocationTypeDevice, 0}; \
    [[maybe_unused]] cudaAtomicOperation operation{};                      \
    [[maybe_unused]] unsigned got = 0;                                     \
    SAY(call);                                                             \
  }

NOTHING(nothingPool, cudaMemGetDefaultMemPool(nullptr, &device, cudaMemAllocationTypePinned))
NOTHING(nothingPoolOf, cudaMemGetDefaultMemPool(&pool, nullptr, cudaMemAllocationTypePinned))
NOTHING(nothingCurrentPool, cudaMemGetMemPool(nullptr, &device, cudaMemAllocationTypePinned))
NOTHING(nothingCurrentPoolOf, cudaMemGetMemPool(&pool, nullptr, cudaMemAllocationTypePinned))
NOTHING(nothingSetOf, cudaMemSetMemPool(nullptr, cudaMemAllocationTypePinned, pool))
NOTHING(nothingSet, cudaMemSetMemPool(&device, cudaMemAllocationTypePinned, nullptr))
NOTHING(nothingCapabilities, cudaDeviceGetHostAtomicCapabilities(nullptr, &operation, 1, 0))
NOTHING(nothingOperations, cudaDeviceGetHostAtomicCapabilities(&got, nullptr, 1, 0))
NOTHING(nothingBlocks, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(nullptr, add, 128, 0, cudaOccupancyDefault))

// Device memory that is declared as the host's.
#define DIRECTED(name, call)      \
  SECTION(name) {                 \
    setUpRows();                  \
    SAY(call);                    \
    SAY(cudaDeviceSynchronize()); \
    ARRAY(device, 16);            \
  }

DIRECTED(rowsToDeviceAsHost, copyRows(device, rows, cudaMemcpyHostToHost))
DIRECTED(rowsFromDeviceAsHost, copyRows(rows, device, cudaMemcpyHostToHost))
DIRECTED(rowsOfDeviceToDevice, copyRows(device, device + 16, cudaMemcpyHostToDevice))
DIRECTED(rowsOfDeviceToHost, copyRows(device, device + 16, cudaMemcpyDeviceToHost))
DIRECTED(boxesToDeviceAsHost, copyBox(device, rows, cudaMemcpyHostToHost))
DIRECTED(boxesFromDeviceAsHost, copyBox(rows, device, cudaMemcpyHostToHost))
DIRECTED(boxesOfDeviceToDevice, copyBox(device, device + 16, cudaMemcpyHostToDevice))
