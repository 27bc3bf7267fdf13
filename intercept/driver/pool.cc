// Stream-ordered allocation and pools: decisions of the client, like every allocation (session/stream-pools.h).
#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

template <typename Body>
CUresult withPool(CUmemoryPool handle, Body&& body, const char* caller = __builtin_FUNCTION()) {
  return enterAny([&](Thread& thread) { return client::withPool(thread, handle, body); }, caller);
}

// Runs `body` with the pools of a device. CUDA_ERROR_INVALID_DEVICE if there is none of that number.
template <typename Body>
CUresult withDevice(CUdevice device, Body&& body, const char* caller = __builtin_FUNCTION()) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!thread.session.hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    auto number = static_cast<unsigned>(device);
    return thread.session.memory.withPools(thread, [&](StreamPools& pools) -> CUresult { return body(pools, number); });
  }, caller);
}

}  // namespace

CUresult vgpu::client::allocateInStream(CUdeviceptr* dptr, size_t bytes, CUmemoryPool pool, CUstream hStream) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t stream = toWire(hStream), address = 0;
    if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    if (thread.session.captures.isActive()) {
      auto describe = [&](NodeWork& work) -> CUresult {
        CUDA_MEM_ALLOC_NODE_PARAMS params{};
        auto set = [&](StreamPools& pools) { return pools.describe(pool, thread.deviceOf(stream), bytes, params); };
        CUresult bad = thread.session.memory.withPools(thread, set);
        return bad != CUDA_SUCCESS ? bad : allocateNode(thread, params, dptr, work);
      };
      if (auto captured = thread.session.captures.add(thread, stream, describe)) return *captured;
    }
    auto current = [&](StreamPools& pools) { return pools.currentOf(thread.deviceOf(stream)); };
    CUmemoryPool from = pool != nullptr ? pool : thread.session.memory.withPools(thread, current);
    if (CUresult error = thread.session.memory.allocateOrdered(thread, bytes, from, stream, address)) return error;
    *dptr = address;
    return CUDA_SUCCESS;
  });
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  auto describe = [&](Thread& thread, NodeWork& work) { return freeNode(thread.session, dptr, work); };
  return inStream(hStream, describe, [&](Thread& thread, uint64_t stream) -> CUresult {
    if (auto ofGraph = thread.session.graphMemories.find(dptr))
      return thread.session.graphMemories.freeOrdered(thread, *ofGraph, stream);
    return thread.session.memory.freeOrdered(thread, dptr, stream);
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if (pool == nullptr || poolProps == nullptr || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  const bool isShareable = poolProps->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE && !isShareable) ||
      poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;
  CUresult result = withDevice(poolProps->location.id, [&](StreamPools& pools, unsigned device) {
    *pool = pools.create(device, poolProps->maxSize);
    pools.find(*pool)->isShareable = isShareable;
    return CUDA_SUCCESS;
  });
  return result == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : result;  // a wrong structure, says the driver
}

VGPU_EXPORT CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
  return withPool(pool, [&](StreamPools& pools, StreamPool& found) {
    if (found.isDefault) return CUDA_ERROR_INVALID_VALUE;
    pools.destroy(pool);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return enter([&](Thread& thread) { return thread.session.memory.trimPool(thread, pool, minBytesToKeep); });
}

VGPU_EXPORT CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  if (map == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  return withPool(pool, [&](StreamPools&, StreamPool& found) -> CUresult {
    Session& session = *initializedSession();
    for (auto& [location, flags] : std::span(map, count)) {
      const bool isAll = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, isNone = flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
      const bool isRead = flags == CU_MEM_ACCESS_FLAGS_PROT_READ;
      if (location.type == CU_MEM_LOCATION_TYPE_INVALID || !(isAll || isNone || isRead)) return CUDA_ERROR_INVALID_VALUE;
      if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || isRead) return CUDA_ERROR_NOT_SUPPORTED;
      const auto device = static_cast<unsigned>(location.id);
      const bool isThere = session.hasDevice(location.id), isOwn = device == found.device;
      const bool may = isThere && (isOwn ? isAll : isNone || session.devices[device].canAccess(found.device));
      if (!may) return CUDA_ERROR_INVALID_DEVICE;
    }
    for (auto& [location, flags] : std::span(map, count)) found.access[static_cast<size_t>(location.id)] = flags;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  return withPool(pool, [&](StreamPools&, StreamPool& found) -> CUresult {
    if (!initializedSession()->hasDevice(location->id)) return CUDA_ERROR_INVALID_DEVICE;
    *flags = found.accessOf(static_cast<unsigned>(location->id));
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return withDevice(dev, [&](StreamPools& pools, unsigned device) -> CUresult {
    StreamPool* chosen = pools.find(pool);
    if (chosen == nullptr || chosen->isTaken || chosen->device != device) return CUDA_ERROR_INVALID_VALUE;
    pools.setCurrent(device, pool);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
