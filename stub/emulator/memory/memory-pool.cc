#include "stub/emulator/memory/memory-pool.h"

#include <cstring>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {

void MemoryPool::add(uint64_t bytes) {
  uint64_t now = used.fetch_add(bytes) + bytes, high = usedHigh;
  while (now > high && !usedHigh.compare_exchange_weak(high, now)) {
  }
}

namespace {

uint64_t allocate(Context& context, MemoryPool& pool, uint64_t bytes) {
  DevicePool& memory = context.driver.pool(pool.device);
  uint64_t address = 0;
  try {
    address = memory.allocate(bytes, &context, pool.handle);
  } catch (const Refusal&) {
    // Frees that the streams have not reached yet may return enough memory.
    context.streams.waitForAll();
    address = memory.allocate(bytes, &context, pool.handle);
  }
  pool.add(bytes);
  return address;
}

CUresult allocateAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool poolHandle, CUstream streamHandle) {
  return enterContext([&](Context& context) {
    require(address != nullptr);
    std::shared_ptr<Stream> stream = streamOf(context, streamHandle);
    std::shared_ptr<MemoryPool> pool =
        poolHandle ? context.driver.memoryPools.get(poolHandle) : context.driver.currentPool(stream->context.device);
    *address = 0;
    if (bytes == 0) return;
    *address = allocate(stream->context, *pool, bytes);
  });
}

std::atomic<int>* findReuse(MemoryPool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return &pool.reuse[0];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return &pool.reuse[1];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return &pool.reuse[2];
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocateAsync(address, bytes, nullptr, stream);
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return pool ? allocateAsync(address, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    if (address == 0) return;
    Driver& driver = context.driver;
    Mapping mapping = driver.space.beginFree(address);  // refuses a second free of the same range
    stream->submit({.weight = Weight::light,
                    .action =
                        [&driver, mapping] {
                          driver.freePlain(mapping);
                          return Outcome::finished;
                        },
                    .type = CU_GRAPH_NODE_TYPE_MEM_FREE});
  });
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr && properties != nullptr && properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) refuse(CUDA_ERROR_NOT_SUPPORTED);
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) refuse(CUDA_ERROR_NOT_SUPPORTED);
    *handle = driver.memoryPools.add(std::make_shared<MemoryPool>(driver.device(properties->location.id)));
  });
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<MemoryPool> pool = driver.memoryPools.get(handle);
    if (pool->isDefault) refuse(CUDA_ERROR_INVALID_VALUE);
    driver.memoryPools.remove(handle);
    driver.forgetPool(*pool);
  });
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(pool != nullptr);
    *pool = driver.defaultPool(driver.device(device))->handle;
  });
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(pool != nullptr);
    *pool = driver.currentPool(driver.device(device))->handle;
  });
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  return enterDriver([&](Driver& driver) {
    Device& device = driver.device(ordinal);
    std::shared_ptr<MemoryPool> pool = driver.memoryPools.get(handle);
    require(&pool->device == &device);
    driver.setCurrentPool(device, pool);
  });
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  return enterDriver([&](Driver& driver) { driver.memoryPools.get(handle); });
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<MemoryPool> pool = driver.memoryPools.get(handle);
    require(value != nullptr);
    if (std::atomic<int>* flag = findReuse(*pool, attribute)) {
      *flag = *static_cast<const int*>(value) != 0;
      return;
    }
    cuuint64_t number = 0;
    std::memcpy(&number, value, sizeof number);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      pool->releaseThreshold = number;
      return;
    }
    require(attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
    require(number == 0);  // high-water marks can only be reset
    pool->usedHigh = pool->used.load();
  });
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<MemoryPool> pool = driver.memoryPools.get(handle);
    require(value != nullptr);
    if (std::atomic<int>* flag = findReuse(*pool, attribute)) {
      *static_cast<int*>(value) = *flag;
      return;
    }
    cuuint64_t number = 0;
    switch (attribute) {
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        number = pool->releaseThreshold;
        break;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        number = pool->used;
        break;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        number = pool->usedHigh;
        break;
      default:
        refuse(CUDA_ERROR_INVALID_VALUE);
    }
    std::memcpy(value, &number, sizeof number);
  });
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* descriptions, size_t count) {
  return enterDriver([&](Driver& driver) {
    driver.memoryPools.get(handle);
    require(descriptions != nullptr && count != 0);
    // Peers can access plain memory if their context has enabled access; the pool does not change that.
    for (size_t i = 0; i < count; ++i) driver.device(descriptions[i].location.id);
  });
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<MemoryPool> pool = driver.memoryPools.get(handle);
    require(flags != nullptr && location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE);
    bool own = &driver.device(location->id) == &pool->device;
    *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}
