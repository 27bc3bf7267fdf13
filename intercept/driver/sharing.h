// What several processes share: the entries of CUDA's inter-process communication, and of pools that are shared (docs/ipc.md).
#pragma once

#include <cuda.h>

#include "intercept/session/entry.h"

namespace vgpu::client {

// What such a handle is of: "vgpu-mem", "vgpu-evt", "vgpu-ptr".
enum class Shared : uint64_t { memory = 0x6d656d2d75706776, event = 0x7476652d75706776, pooled = 0x7274702d75706776 };
// Gives other sessions an event, by its handle, or memory, by an address in it; of a pool that is shared, by its first.
CUresult share(Thread& thread, Shared what, uint64_t object, void* handle);
// Takes what another session has given. `pool`: the one that it is of.
CUresult openShared(Thread& thread, Shared what, const void* handle, CUmemoryPool pool, uint64_t& object);
// Pools, by a descriptor.
CUresult sharePool(void* descriptor, CUmemoryPool pool, CUmemAllocationHandleType type);
CUresult openSharedPool(CUmemoryPool* pool, void* descriptor, CUmemAllocationHandleType type);

}  // namespace vgpu::client
