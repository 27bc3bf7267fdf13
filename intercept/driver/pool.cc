// Stream-ordered allocation and pools: the client decides them, like every allocation (session/stream-pools.h).
#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

template <typename Body>
CUresult withPool(CUmemoryPool handle, Body&& body, const char* caller = __builtin_FUNCTION()) {
  return enterAny([&](Thread& thread) { return client::withPool(thread, handle, body); }, caller);
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
    if (CUresult error = thread.session.memory.allocateOrdered(thread, bytes, pool, stream, address)) return error;
    *dptr = address;
    return CUDA_SUCCESS;
  });
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  if (dptr == 0) return onStream(hStream, [](Thread&, uint64_t) { return CUDA_SUCCESS; });
  auto describe = [&](Thread& thread, NodeWork& work) { return freeNode(thread.session, dptr, work); };
  return inStream(hStream, describe, [&](Thread& thread, uint64_t stream) -> CUresult {
    if (auto ofGraph = thread.session.graphMemories.find(dptr))
      return thread.session.graphMemories.freeOrdered(thread, *ofGraph, stream);
    return thread.session.memory.freeOrdered(thread, dptr, stream);
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if (pool == nullptr || poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return enterAny([&](Thread& thread) -> CUresult {
    PoolPlace place;
    if (CUresult bad = PoolPlace::ofNew(*poolProps, thread.session.devices.size(), place)) return bad;
    return thread.session.memory.withPools(thread, [&](StreamPools& pools) {
      *pool = pools.create(place, poolProps->maxSize);
      pools.find(*pool)->isShareable = poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
      return CUDA_SUCCESS;
    });
  });
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
  if (map == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return withPool(pool, [&](StreamPools&, StreamPool& found) -> CUresult {
    auto& devices = initializedSession()->devices;
    for (auto& wanted : std::span(map, count))
      if (CUresult bad = found.checkAccess(wanted, devices)) return bad;
    for (auto& wanted : std::span(map, count)) found.access[*found.accessor(wanted.location, devices.size())] = wanted.flags;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return withPool(pool, [&](StreamPools&, StreamPool& found) -> CUresult {
    auto who = found.accessor(*location, initializedSession()->devices.size());
    return who ? (*flags = found.access[*who], CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // extern "C"
