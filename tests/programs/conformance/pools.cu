// Pools of device memory, host memory and managed memory: which can be made, which exist by default, which is the current one, and which
// can be captured.
#include "pools.h"

namespace {

// Creates and destroys a pool.
void tryProperties(const char* what, std::initializer_list<Number> numbers, const CUmemPoolProps& properties) {
  CUmemoryPool pool = nullptr;
  CUresult result = DRIVER(cuMemPoolCreate)(&pool, &properties);
  sayCase(what, numbers, result);
  if (result == CUDA_SUCCESS) CALL(cuMemPoolDestroy, pool);
}

void captureIn(CUmemoryPool pool, CUdeviceptr live) {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUdeviceptr address = 0;
  CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  SAYCU(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  SAYCU(cuMemAllocFromPoolAsync, &address, 4000, pool, stream);
  if (address != 0) {
    SAYCU(cuMemsetD32Async, address, 7, 1000, stream);
    SAYCU(cuMemFreeAsync, address, stream);
  }
  SAYCU(cuStreamEndCapture, stream, &graph);
  VALUE(graph != nullptr);
  if (address != 0 && graph != nullptr) {
    CUgraphNode nodes[4];
    size_t count = 4;
    SAYCU(cuGraphGetNodes, graph, nodes, &count);
    VALUE(count);
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    SAYCU(cuGraphMemAllocNodeGetParams, nodes[0], &params);
    sayNumbers("type, place, id, handles, bytes, accesses", {params.poolProps.allocType, params.poolProps.location.type,
               params.poolProps.location.id, params.poolProps.handleTypes, params.bytesize, params.accessDescCount});
    SAYCU(cuGraphInstantiateWithFlags, &executable, graph, 0);
    if (executable != nullptr) SAYCU(cuGraphLaunch, executable, stream);
    SAYCU(cuStreamSynchronize, stream);
  }
  SAYCU(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  SAYCU(cuMemFreeAsync, live, stream);
  SAYCU(cuStreamEndCapture, stream, &graph);
}

}  // namespace

SECTION(device0) {
  CHECK(cudaFree(nullptr));
  int value = 77;
  SAYCU(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 0);
  VALUE(value);
  SAYCU(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 0);
  VALUE(value);
  SAYCU(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0);
  VALUE(value);
  SAYCU(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0);
  VALUE(value);
  SAY(cudaDeviceGetAttribute(&value, cudaDevAttrHostMemoryPoolsSupported, 0));
  VALUE(value);
  SAY(cudaDeviceGetAttribute(&value, cudaDevAttrHostNumaMemoryPoolsSupported, 0));
  VALUE(value);
}

SECTION(creation) {
  CHECK(cudaFree(nullptr));
  for (int type : {0, 1, 2, 3, -1})
    for (int place : {0, 1, 2, 3, 4, 5, -1})
      for (int handles : {0, 1, 2, 16}) {
        CUmemPoolProps properties = propertiesOf({static_cast<CUmemAllocationType>(type), static_cast<CUmemLocationType>(place)});
        properties.handleTypes = static_cast<CUmemAllocationHandleType>(handles);
        tryProperties("type, place, handles", {type, place, handles}, properties);
      }
}

SECTION(creationOf) {
  CHECK(cudaFree(nullptr));
  for (Kind kind : kinds) {
    for (int id : {-1, 64, 99, 1024})
      tryProperties("type, place, id", {kind.type, kind.place, id}, propertiesOf(kind, id));
    CUmemPoolProps properties = propertiesOf(kind);
    for (int usage : {2, 0xffff}) {
      properties.usage = static_cast<unsigned short>(usage);
      tryProperties("type, place, usage", {kind.type, kind.place, usage}, properties);
    }
    properties = propertiesOf(kind);
    properties.win32SecurityAttributes = &properties;
    tryProperties("type, place, with security attributes", {kind.type, kind.place}, properties);
    properties = propertiesOf(kind);
    properties.reserved[53] = 1;
    tryProperties("type, place, with a reserved byte", {kind.type, kind.place}, properties);
    for (size_t most : {size_t{1}, size_t{1} << 30, size_t{1} << 50}) {
      properties = propertiesOf(kind);
      properties.maxSize = most;
      tryProperties("type, place, most", {kind.type, kind.place, most}, properties);
    }
  }
}

SECTION(defaults) {
  CHECK(cudaFree(nullptr));
  std::vector<CUmemoryPool> seen;
  for (int type : {0, 1, 2, 3})
    for (int place : {0, 1, 2, 3, 4, 5})
      for (int id : {0, 99, -1}) {
        CUmemLocation location{static_cast<CUmemLocationType>(place), id};
        CUmemoryPool pool = nullptr, now = nullptr;
        CUresult result = DRIVER(cuMemGetDefaultMemPool)(&pool, &location, static_cast<CUmemAllocationType>(type));
        sayCase("type, place, id", {type, place, id}, result);
        CUresult alike = DRIVER(cuMemGetMemPool)(&now, &location, static_cast<CUmemAllocationType>(type));
        if (alike != result) sayCase("current: type, place, id", {type, place, id}, alike);
        if (result != CUDA_SUCCESS) continue;
        size_t number = 0;
        while (number < seen.size() && seen[number] != pool) ++number;
        if (number == seen.size()) seen.push_back(pool);
        sayNumbers("number, is current", {number, pool == now});
      }
  for (CUmemoryPool pool : seen) {
    sayAccess(pool);
    SAYCU(cuMemPoolDestroy, pool);
  }
}

SECTION(setting) {
  CHECK(cudaFree(nullptr));
  for (Kind kind : kinds) {
    CUmemoryPool pool = create(kind), now = nullptr, before = nullptr, ofDevice = nullptr;
    if (pool == nullptr) continue;
    SAYCU(cuDeviceSetMemPool, 0, pool);
    SAYCU(cuDeviceGetMemPool, &ofDevice, 0);
    VALUE(ofDevice == pool);
    CUmemLocation first{device, 0};
    SAYCU(cuMemGetMemPool, &ofDevice, &first, managed);
    VALUE(ofDevice == pool);
    for (int type : {0, 1, 2, 3})
      for (int place : {0, 1, 2, 3, 4, 5})
        for (int id : {0, 99}) {
          CUmemLocation location{static_cast<CUmemLocationType>(place), id};
          auto allocation = static_cast<CUmemAllocationType>(type);
          CUresult result = DRIVER(cuMemSetMemPool)(&location, allocation, pool);
          if (result != CUDA_SUCCESS && type != kind.type && place != kind.place) continue;
          sayCase("pool's type, place; type, place, id", {kind.type, kind.place, type, place, id}, result);
          if (result != CUDA_SUCCESS) continue;
          DRIVER(cuMemGetMemPool)(&now, &location, allocation);
          DRIVER(cuMemGetDefaultMemPool)(&before, &location, allocation);
          sayNumbers("is current, default", {now == pool, before == pool});
        }
    SAYCU(cuMemPoolDestroy, pool);
    CUmemLocation location{kind.place, 0};
    SAYCU(cuMemGetMemPool, &now, &location, kind.type);
    SAYCU(cuMemGetDefaultMemPool, &before, &location, kind.type);
    VALUE(now == before);
  }
}

SECTION(limits) {
  CHECK(cudaFree(nullptr));
  for (Kind kind : kinds) {
    CUmemoryPool pool = create(kind, 3 << 20);
    CUdeviceptr address = 0, other = 0;
    if (pool == nullptr) continue;
    SAYCU(cuMemAllocFromPoolAsync, &address, 2 << 20, pool, nullptr);
    sayAmounts(pool);
    SAYCU(cuMemAllocFromPoolAsync, &other, 2 << 20, pool, nullptr);
    SAYCU(cuMemAllocFromPoolAsync, &other, 40 << 20, pool, nullptr);
    sayAmounts(pool);
    SAY(cudaDeviceSynchronize());
  }
}

// Captured allocations, one per kind of pool.
#define CAPTURE(name, kind)                                     \
  SECTION(name) {                                               \
    CHECK(cudaFree(nullptr));                                   \
    CUmemoryPool pool = create kind;                            \
    CUdeviceptr live = 0;                                       \
    SAYCU(cuMemAllocFromPoolAsync, &live, 4096, pool, nullptr); \
    SAY(cudaDeviceSynchronize());                               \
    captureIn(pool, live);                                      \
  }
CAPTURE(captureOfDevice, (Kind{pinned, device}))
CAPTURE(captureOfHost, (Kind{pinned, host}))
CAPTURE(captureOfManaged, (Kind{managed, none}))
CAPTURE(captureOfManagedDevice, (Kind{managed, device}))
CAPTURE(captureOfManagedHost, (Kind{managed, host}))

SECTION(nodes) {
  CHECK(cudaFree(nullptr));
  CUgraph graph = nullptr;
  CALL(cuGraphCreate, &graph, 0);
  for (int type : {0, 1, 2, 3})
    for (CUmemLocationType place : allPlaces) {
      CUDA_MEM_ALLOC_NODE_PARAMS params{};
      params.poolProps = propertiesOf({static_cast<CUmemAllocationType>(type), place});
      params.bytesize = 4096;
      CUgraphNode node = nullptr;
      sayCase("type, place", {type, place}, DRIVER(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &params));
    }
}

// Destroyed pools and null pointers: one per section, because the driver may crash.
#define ALONE(name, ...)                                                       \
  SECTION(name) {                                                              \
    CHECK(cudaFree(nullptr));                                                  \
    [[maybe_unused]] CUmemoryPool pool = create({pinned, host});               \
    [[maybe_unused]] CUmemLocation location{host, 0};                          \
    [[maybe_unused]] CUmemPoolProps properties = propertiesOf({pinned, host}); \
    [[maybe_unused]] CUdeviceptr address = 0;                                  \
    [[maybe_unused]] uint64_t value = 0;                                       \
    [[maybe_unused]] CUmemAccess_flags flags{};                                \
    __VA_ARGS__;                                                               \
  }
ALONE(createNothing, SAYCU(cuMemPoolCreate, nullptr, &properties))
ALONE(createOfNothing, SAYCU(cuMemPoolCreate, &pool, nullptr))
ALONE(allocateOfNothing, SAYCU(cuMemAllocFromPoolAsync, &address, 16, nullptr, nullptr))
ALONE(setNothing, SAYCU(cuMemSetMemPool, &location, pinned, nullptr))
ALONE(setNowhere, SAYCU(cuMemSetMemPool, nullptr, pinned, pool))
ALONE(accessOfNowhere, SAYCU(cuMemPoolGetAccess, &flags, pool, nullptr))
ALONE(accessToNothing, SAYCU(cuMemPoolGetAccess, nullptr, pool, &location))
ALONE(destroyedTwice, CALL(cuMemPoolDestroy, pool); SAYCU(cuMemPoolDestroy, pool))
ALONE(destroyedOfAttribute, CALL(cuMemPoolDestroy, pool);
      SAYCU(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value))
