// Functions that implement several entries each: rows of vgpu/api/cuda.table name them and pass the arguments that differ.
#pragma once

#include <cuda.h>

#include "intercept/driver/context-reset.h"
#include "intercept/driver/graph.h"
#include "intercept/driver/green.h"
#include "intercept/driver/library.h"
#include "intercept/driver/occupancy.h"
#include "intercept/driver/pointer.h"
#include "intercept/driver/sharing.h"
#include "intercept/session/copy/engine.h"
#include "intercept/session/entry.h"
#include "intercept/session/launch-shape.h"
#include "intercept/session/stream-priority.h"

namespace vgpu::client {

// ---- texts of errors (errors.cc)
struct ErrorTexts {
  const char *name = nullptr, *text = nullptr;
};
ErrorTexts textsOf(CUresult error);  // null if CUDA has no such error
inline CUresult giveText(const char** out, const char* text) {
  if (out != nullptr) *out = text;
  return out == nullptr || text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// ---- contexts (context.cc)
enum class Uses { one, all };
// Releases one use of the current context, or all uses of any context; the last release ends it.
CUresult endUses(CUcontext context, Uses which);

// ---- launches (launch.cc)
CUresult launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** kernelParams, void** extra);
// What launch() would return, without launching.
CUresult checkLaunch(Thread& thread, CUfunction function, const LaunchShape& shape, CUstream stream, void** kernelParams);
// Cooperative launches on several devices, which begin and end together unless `flags` says otherwise (launch-together.cc).
CUresult launchTogether(const CUDA_LAUNCH_PARAMS* launches, unsigned count, unsigned flags);
// How many clusters of a launch fit on the device at once, or the largest cluster possible.
CUresult clustersOf(int* value, CUfunction function, const CUlaunchConfig* config, bool isPotentialSize);

// ---- copies and fills (copy.cc)
constexpr auto waits = Completion::synchronous, returns = Completion::asynchronous;
// The ends that an entry declares to be device memory.
constexpr Ends anywhere{}, toDevice{true, false}, fromDevice{false, true}, insideDevice{true, true};

CUresult fill(CUstream stream, CUdeviceptr destination, uint64_t pitch, uint32_t value, uint32_t elementBytes, uint64_t width,
              uint64_t height, Completion completion = returns);
CUresult copy1D(uint64_t destination, uint64_t source, uint64_t bytes, CUstream stream, Completion completion, Ends ends);
CUresult copy2D(const CUDA_MEMCPY2D* copy, CUstream stream, Completion completion);
CUresult copy3D(const CUDA_MEMCPY3D* copy, CUstream stream, Completion completion);
CUresult copyPeers(const CUDA_MEMCPY3D_PEER* copy, CUstream stream, Completion completion);
// Copies one row of bytes from or to an array.
CUresult copyRow(const CopyEnd& destination, const CopyEnd& source, uint64_t bytes, CUstream stream, Completion completion);
inline CopyEnd inArray(CUarray array, uint64_t offset) { return CopyEnd::array(toWire(array), offset); }
inline CopyEnd inMemory(uint64_t address) { return CopyEnd::memory(address); }

// Whether `stream` is the legacy stream, under either name.
inline bool isLegacy(CUstream stream) { return stream == CU_STREAM_LEGACY || (stream == nullptr && !Thread::ownDefaultStream); }

// Batches (copy-batch.cc). `failed`: receives the index of the refused copy; may be null.
CUresult copyBatch(const CUdeviceptr* dsts, const CUdeviceptr* srcs, const size_t* sizes, size_t count, const CUmemcpyAttributes* attrs,
                   const size_t* attrsIdxs, size_t numAttrs, size_t* failed, CUstream stream);
CUresult copyBatch3D(size_t count, const CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed, unsigned long long flags, CUstream stream);

// ---- pools
// Runs `body` with the pools and the place that `location` and `type` name.
template <typename Body>
CUresult onPlace(Thread& thread, const CUmemLocation& location, CUmemAllocationType type, Body&& body) {
  PoolPlace place;
  if (CUresult bad = PoolPlace::find(type, location, thread.session.devices.size(), place)) return bad;
  return thread.session.memory.withPools(thread, [&](StreamPools& pools) -> CUresult { return body(pools, place); });
}

// Runs `body` with the pools and the pool of that handle; CUDA_ERROR_INVALID_VALUE if there is none.
template <typename Body>
CUresult withPool(Thread& thread, CUmemoryPool handle, Body&& body) {
  return thread.session.memory.withPools(thread, [&](StreamPools& pools) -> CUresult {
    StreamPool* pool = pools.find(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : body(pools, *pool);
  });
}

// Runs `body` with an attribute of a pool, after releasing memory beyond its threshold, or of a device's graph memory.
template <typename Body>
CUresult onAttribute(Thread& thread, CUmemoryPool handle, CUmemPool_attribute which, Body&& body) {
  return withPool(thread, handle, [&](StreamPools& pools, StreamPool& pool) {
    if (!pools.hasPendingFree(handle)) pool.trim(pool.releaseThreshold);
    return body(pool.attribute(which));
  });
}
template <typename Body>
CUresult onAttribute(Thread& thread, CUdevice device, CUgraphMem_attribute which, Body&& body) {
  return thread.session.graphMemories.onAttribute(static_cast<unsigned>(device), which, body);
}

// ---- memory (pool.cc). A null pool is the current pool of the stream's device.
CUresult allocateInStream(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream);

// ---- managed memory (managed.cc)
inline CUmemLocation locationOf(CUdevice device) {
  return device == CU_DEVICE_CPU ? CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0}
                                 : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, device};
}
struct ManagedBatch {
  const CUdeviceptr* addresses;
  const size_t* sizes;
  size_t count;
};
CUresult allocateManaged(CUdeviceptr* address, size_t bytes, unsigned flags);
CUresult adviseManaged(CUdeviceptr address, size_t bytes, CUmem_advise what, const CUmemLocation& location);
CUresult prefetchRange(CUdeviceptr address, size_t bytes, const CUmemLocation& location, unsigned flags, CUstream stream);
CUresult managedAttributes(void** data, size_t* sizes, CUmem_range_attribute* attributes, size_t count, CUdeviceptr address,
                           size_t bytes);
CUresult prefetchManaged(const ManagedBatch& batch, const CUmemLocation* locations, const size_t* indices, size_t locationCount,
                         unsigned long long flags, CUstream stream);
CUresult discardManaged(const ManagedBatch& batch, unsigned long long flags, CUstream stream);
CUresult attachManaged(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags);

// ---- peers (peer.cc)
// Access from the current context to the memory of `other`, a live context.
CUresult setPeerAccess(CUcontext other, bool isEnabled);
// Returns a fact of DeviceInfo::peers.
CUresult tellPeer(int* value, size_t fact, CUdevice device, CUdevice peer);

// ---- arrays (array.cc)
// CUDA_ERROR_INVALID_VALUE for a format that cuda.h does not have; the driver checks the rest of a shape.
CUresult checkFormat(const CUDA_ARRAY3D_DESCRIPTOR& shape);
std::unique_ptr<ArrayLayout> layoutOf(const CUDA_ARRAY3D_DESCRIPTOR& shape);
// A level of a mipmapped array, or a plane of an array. Each has one handle, which is destroyed with the whole array.
CUresult partOf(Thread& thread, uint64_t whole, unsigned index, uint64_t& part);
CUresult destroyArray(Thread& thread, uint64_t handle);

// ---- streams
// Creates a stream in a green context, or in the current context if `green` is 0 (stream.cc).
CUresult createStream(Thread& thread, uint64_t green, unsigned flags, int priority, uint64_t& stream);
// Runs `body` with the handle of a live stream as frames carry it.
template <typename Body>
CUresult onStream(CUstream stream, Body&& body, const char* caller = __builtin_FUNCTION()) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(stream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    if (CUresult refused = thread.refuseCaptured(handle)) return refused;
    return body(thread, handle);
  }, caller);
}

// As onStream(), for a query of a stream or a wait for it, which a capture may forbid.
template <typename Body>
CUresult askStream(CUstream stream, Body&& body) {
  return onStream(stream, [&](Thread& thread, uint64_t handle) -> CUresult {
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    return body(thread, handle);
  });
}

// As onStream(), for work that can be captured: `describe` makes the work of its graph node.
template <typename Describe, typename Body>
CUresult inStream(CUstream stream, Describe&& describe, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(stream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    if (thread.session.captures.isActive()) [[unlikely]]
      if (auto captured = thread.session.captures.add(thread, handle, [&](NodeWork& work) { return describe(thread, work); }))
        return *captured;
    return body(thread, handle);
  });
}

// Makes `stream`, a resolved handle, wait while `function` runs on the session's host-function thread.
CUresult postHostFunction(Thread& thread, uint64_t stream, HostFunctions::Function function,
                          HostFunctions::OnFault onFault = HostFunctions::OnFault::dropped);
// The same for the program's handle. `node`: its work in a graph; nothing for a callback, which cannot be captured and receives faults.
CUresult runInStream(CUstream stream, std::optional<HostWork> node, HostFunctions::Function function);

// Waits for all work of a device. Refused while a stream of the device is capturing.
inline CUresult synchronizeAll(Thread& thread, unsigned device) {
  if (thread.session.captures.isActive())
    if (CUresult refused = thread.session.captures.refuseOnDevice(device)) return refused;
  return synchronizeDevice(thread, device);
}

// Waits for all work of a context; for a regular context, of its whole device.
inline CUresult synchronizeContext(Thread& thread, uint64_t context) {
  if (thread.session.contexts.ownerOf(context) == context) return synchronizeAll(thread, handleDevice(context));
  if (thread.session.captures.isActive())
    if (CUresult refused = thread.session.captures.refuseOnDevice(handleDevice(context))) return refused;
  for (uint64_t stream : thread.session.handles.live(api::Kind::STREAM, handleDevice(context), context))
    if (CUresult error = synchronizeStream(thread, stream)) return error;
  return CUDA_SUCCESS;
}

// ---- events (event.cc)
// `edge`: the data of the edge to nodes that wait for the event in a capture, if it differs from the stream's.
CUresult recordEvent(CUevent event, CUstream stream, unsigned flags, const CUgraphEdgeData& edge = {});
// The same for all streams of a context (context-event.cc).
CUresult recordContext(CUcontext context, CUevent event);
CUresult delayContext(CUcontext context, CUevent event);
// Runs `body` with a live event; CUDA_ERROR_INVALID_HANDLE if `event` is not one.
template <typename Body>
CUresult onEvent(CUevent event, Body&& body, const char* caller = __builtin_FUNCTION()) {
  return enter([&](Thread& thread) -> CUresult {
    auto* entry = thread.session.handles.find<api::Kind::EVENT>(toWire(event));
    return entry == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(thread, *entry);
  }, caller);
}

// As onEvent(), for a query: refused for an event last recorded in a capture, and possibly during any capture.
template <typename Body>
CUresult askEvent(CUevent event, Body&& body) {
  return onEvent(event, [&](Thread& thread, EventState& state) -> CUresult {
    if (thread.session.captures.concernsEvents())
      if (CUresult refused = thread.session.captures.refuseEvent(toWire(event))) return refused;
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    return body(thread, state);
  });
}

// ---- textures and surfaces (texture.cc)
CUresult makeTexture(CUtexObject* value, ObjectKind kind, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* sampling,
                     const CUDA_RESOURCE_VIEW_DESC* view);
CUresult destroyTexture(uint64_t value, ObjectKind kind);
template <typename Description>
CUresult describeTexture(uint64_t value, ObjectKind kind, Description KnownTexture::*member, Description* out) {
  return enter([&](Thread& thread) -> CUresult {
    auto known = thread.session.textures.find(thread.device(), value, kind);
    if (out == nullptr || !known) return CUDA_ERROR_INVALID_VALUE;
    *out = (*known).*member;
    return CUDA_SUCCESS;
  });
}

}  // namespace vgpu::client
