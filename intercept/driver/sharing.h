// What several processes share: the entries of CUDA's inter-process communication, and of pools that are shared (docs/ipc.md).
#pragma once

#include <cuda.h>

namespace vgpu::client {

CUresult shareMemory(CUipcMemHandle* handle, CUdeviceptr address);
CUresult openSharedMemory(CUdeviceptr* address, const CUipcMemHandle& handle, unsigned flags);
CUresult shareEvent(CUipcEventHandle* handle, CUevent event);
CUresult openSharedEvent(CUevent* event, const CUipcEventHandle& handle);
// Pools, by a descriptor, and allocations of them.
CUresult sharePool(void* descriptor, CUmemoryPool pool, CUmemAllocationHandleType type);
CUresult openSharedPool(CUmemoryPool* pool, void* descriptor, CUmemAllocationHandleType type);
CUresult sharePooled(CUmemPoolPtrExportData* data, CUdeviceptr address);
CUresult openSharedPooled(CUdeviceptr* address, CUmemoryPool pool, const CUmemPoolPtrExportData* data);

}  // namespace vgpu::client
