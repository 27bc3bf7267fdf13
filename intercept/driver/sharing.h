// Sharing between processes: CUDA's inter-process communication and shareable pools (docs/ipc.md).
#pragma once

#include <cuda.h>

#include "intercept/session/entry.h"

namespace vgpu::client {

// The type of a handle, as text: "vgpu-mem", "vgpu-evt", "vgpu-ptr".
enum class Shared : uint64_t { memory = 0x6d656d2d75706776, event = 0x7476652d75706776, pooled = 0x7274702d75706776 };
// Exports an event, given by its handle, or memory, by an address in it; memory of a shared pool by its first address.
CUresult share(Thread& thread, Shared what, uint64_t object, void* handle);
// Opens what another session has exported. `pool`: the pool to which pooled memory belongs.
CUresult openShared(Thread& thread, Shared what, const void* handle, CUmemoryPool pool, uint64_t& object);
// Exports and opens pools, through a file descriptor.
CUresult sharePool(void* descriptor, CUmemoryPool pool, CUmemAllocationHandleType type);
CUresult openSharedPool(CUmemoryPool* pool, void* descriptor, CUmemAllocationHandleType type);

}  // namespace vgpu::client
