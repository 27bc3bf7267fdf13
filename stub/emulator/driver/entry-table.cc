#include "stub/emulator/driver/entry-table.h"

#include "stub/emulator/driver/casts-unsafe.h"
#include "stub/emulator/stream/stream.h"
#include "vgpu/api/driver-entries.h"

namespace vgpu::emulator::api {
namespace {

// The same function with the null stream meaning the calling thread's own.
template <auto function>
struct PerThread;
template <class... Arguments, CUresult(CUDAAPI* function)(Arguments...)>
struct PerThread<function> {
  static CUresult CUDAAPI call(Arguments... arguments) {
    PerThreadDefault scope;
    return function(arguments...);
  }
};

template <auto function, bool exists>
void* perThreadOf() {
  if constexpr (exists) return asAddress(&PerThread<function>::call);
  return nullptr;
}

// An entry is a row: base name and version suffix. The table of entries says since when it exists, and whether in a flavour for
// per-thread default streams too.
#define ENTRY(name, suffix)                                                                        \
  {                                                                                                \
    #name, static_cast<int>(vgpu::api::entryOf(#name #suffix).since), asAddress(&name##suffix),    \
        perThreadOf<&name##suffix, vgpu::api::entryOf(#name #suffix).hasPerThread>()               \
  }

// The deprecated ones are entries like any other.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
const Entry table[] = {
    // array.cc
    ENTRY(cuArray3DCreate, _v2),
    ENTRY(cuArrayCreate, _v2),
    ENTRY(cuArrayDestroy, ),
    ENTRY(cuArray3DGetDescriptor, _v2),
    ENTRY(cuArrayGetDescriptor, _v2),
    ENTRY(cuMipmappedArrayCreate, ),
    ENTRY(cuMipmappedArrayGetLevel, ),
    ENTRY(cuMipmappedArrayDestroy, ),
    // capture.cc
    ENTRY(cuStreamBeginCapture, _v2),
    ENTRY(cuStreamBeginCaptureToGraph, ),
    ENTRY(cuStreamEndCapture, ),
    ENTRY(cuStreamIsCapturing, ),
    ENTRY(cuStreamGetCaptureInfo, _v3),
    ENTRY(cuStreamGetCaptureInfo, _v2),
    ENTRY(cuStreamUpdateCaptureDependencies, _v2),
    ENTRY(cuThreadExchangeStreamCaptureMode, ),
    // context.cc
    ENTRY(cuCtxCreate, _v2),
    ENTRY(cuCtxCreate, _v3),
    ENTRY(cuCtxCreate, _v4),
    ENTRY(cuCtxDestroy, _v2),
    ENTRY(cuCtxSetCurrent, ),
    ENTRY(cuCtxGetCurrent, ),
    ENTRY(cuCtxPushCurrent, _v2),
    ENTRY(cuCtxPopCurrent, _v2),
    ENTRY(cuCtxGetDevice, ),
    ENTRY(cuCtxGetDevice, _v2),
    ENTRY(cuCtxSynchronize, ),
    ENTRY(cuCtxSynchronize, _v2),
    ENTRY(cuCtxGetFlags, ),
    ENTRY(cuCtxSetFlags, ),
    ENTRY(cuCtxGetId, ),
    ENTRY(cuCtxGetApiVersion, ),
    ENTRY(cuCtxGetLimit, ),
    ENTRY(cuCtxSetLimit, ),
    ENTRY(cuCtxGetCacheConfig, ),
    ENTRY(cuCtxSetCacheConfig, ),
    ENTRY(cuCtxGetSharedMemConfig, ),
    ENTRY(cuCtxSetSharedMemConfig, ),
    ENTRY(cuCtxGetStreamPriorityRange, ),
    ENTRY(cuCtxResetPersistingL2Cache, ),
    ENTRY(cuCtxGetExecAffinity, ),
    ENTRY(cuCtxDetach, ),
    // copy-3d.cc
    ENTRY(cuMemcpy2D, _v2),
    ENTRY(cuMemcpy2DUnaligned, _v2),
    ENTRY(cuMemcpy2DAsync, _v2),
    ENTRY(cuMemcpy3D, _v2),
    ENTRY(cuMemcpy3DAsync, _v2),
    ENTRY(cuMemcpy3DPeer, ),
    ENTRY(cuMemcpy3DPeerAsync, ),
    ENTRY(cuMemcpyHtoA, _v2),
    ENTRY(cuMemcpyAtoH, _v2),
    ENTRY(cuMemcpyHtoAAsync, _v2),
    ENTRY(cuMemcpyAtoHAsync, _v2),
    ENTRY(cuMemcpyDtoA, _v2),
    ENTRY(cuMemcpyAtoD, _v2),
    ENTRY(cuMemcpyAtoA, _v2),
    // copy.cc
    ENTRY(cuMemcpy, ),
    ENTRY(cuMemcpyAsync, ),
    ENTRY(cuMemcpyHtoD, _v2),
    ENTRY(cuMemcpyHtoDAsync, _v2),
    ENTRY(cuMemcpyDtoH, _v2),
    ENTRY(cuMemcpyDtoHAsync, _v2),
    ENTRY(cuMemcpyDtoD, _v2),
    ENTRY(cuMemcpyDtoDAsync, _v2),
    ENTRY(cuMemcpyPeer, ),
    ENTRY(cuMemcpyPeerAsync, ),
    // device.cc
    ENTRY(cuDeviceGet, ),
    ENTRY(cuDeviceGetCount, ),
    ENTRY(cuDeviceGetName, ),
    ENTRY(cuDeviceGetUuid, _v2),
    ENTRY(cuDeviceTotalMem, _v2),
    ENTRY(cuDeviceGetAttribute, ),
    ENTRY(cuDeviceComputeCapability, ),
    ENTRY(cuDeviceGetProperties, ),
    ENTRY(cuDeviceGetPCIBusId, ),
    ENTRY(cuDeviceGetByPCIBusId, ),
    ENTRY(cuDeviceGetLuid, ),
    ENTRY(cuDeviceGetTexture1DLinearMaxWidth, ),
    ENTRY(cuDeviceGetExecAffinitySupport, ),
    ENTRY(cuFlushGPUDirectRDMAWrites, ),
    // driver.cc
    ENTRY(cuInit, ),
    ENTRY(cuDriverGetVersion, ),
    // error.cc
    ENTRY(cuGetErrorName, ),
    ENTRY(cuGetErrorString, ),
    // event.cc
    ENTRY(cuEventCreate, ),
    ENTRY(cuEventDestroy, _v2),
    ENTRY(cuEventRecordWithFlags, ),
    ENTRY(cuEventRecord, ),
    ENTRY(cuStreamWaitEvent, ),
    ENTRY(cuEventQuery, ),
    ENTRY(cuEventSynchronize, ),
    ENTRY(cuEventElapsedTime, _v2),
    ENTRY(cuEventElapsedTime, ),
    // fill.cc
    ENTRY(cuMemsetD8, _v2),
    ENTRY(cuMemsetD8Async, ),
    ENTRY(cuMemsetD2D8, _v2),
    ENTRY(cuMemsetD2D8Async, ),
    ENTRY(cuMemsetD16, _v2),
    ENTRY(cuMemsetD16Async, ),
    ENTRY(cuMemsetD2D16, _v2),
    ENTRY(cuMemsetD2D16Async, ),
    ENTRY(cuMemsetD32, _v2),
    ENTRY(cuMemsetD32Async, ),
    ENTRY(cuMemsetD2D32, _v2),
    ENTRY(cuMemsetD2D32Async, ),
    // function.cc
    ENTRY(cuFuncGetAttribute, ),
    ENTRY(cuFuncSetAttribute, ),
    ENTRY(cuFuncSetCacheConfig, ),
    ENTRY(cuFuncSetSharedMemConfig, ),
    ENTRY(cuFuncGetName, ),
    ENTRY(cuFuncGetModule, ),
    ENTRY(cuFuncGetParamInfo, ),
    ENTRY(cuFuncIsLoaded, ),
    ENTRY(cuFuncLoad, ),
    // get-proc-address.cc
    ENTRY(cuGetProcAddress, _v2),
    // graph-exec.cc
    ENTRY(cuGraphInstantiateWithFlags, ),
    ENTRY(cuGraphInstantiateWithParams, ),
    ENTRY(cuGraphExecGetFlags, ),
    ENTRY(cuGraphExecDestroy, ),
    ENTRY(cuGraphLaunch, ),
    ENTRY(cuGraphUpload, ),
    ENTRY(cuGraphExecUpdate, _v2),
    ENTRY(cuGraphNodeSetEnabled, ),
    ENTRY(cuGraphNodeGetEnabled, ),
    // graph-node.cc
    ENTRY(cuGraphAddKernelNode, _v2),
    ENTRY(cuGraphKernelNodeGetParams, _v2),
    ENTRY(cuGraphKernelNodeSetParams, _v2),
    ENTRY(cuGraphExecKernelNodeSetParams, _v2),
    ENTRY(cuGraphAddMemcpyNode, ),
    ENTRY(cuGraphMemcpyNodeGetParams, ),
    ENTRY(cuGraphMemcpyNodeSetParams, ),
    ENTRY(cuGraphExecMemcpyNodeSetParams, ),
    ENTRY(cuGraphAddMemsetNode, ),
    ENTRY(cuGraphMemsetNodeGetParams, ),
    ENTRY(cuGraphMemsetNodeSetParams, ),
    ENTRY(cuGraphExecMemsetNodeSetParams, ),
    ENTRY(cuGraphAddHostNode, ),
    ENTRY(cuGraphHostNodeGetParams, ),
    ENTRY(cuGraphHostNodeSetParams, ),
    ENTRY(cuGraphExecHostNodeSetParams, ),
    ENTRY(cuGraphAddEmptyNode, ),
    ENTRY(cuGraphAddBatchMemOpNode, ),
    ENTRY(cuGraphBatchMemOpNodeGetParams, ),
    ENTRY(cuGraphBatchMemOpNodeSetParams, ),
    ENTRY(cuGraphExecBatchMemOpNodeSetParams, ),
    // graph-special.cc
    ENTRY(cuGraphAddChildGraphNode, ),
    ENTRY(cuGraphChildGraphNodeGetGraph, ),
    ENTRY(cuGraphAddEventRecordNode, ),
    ENTRY(cuGraphAddEventWaitNode, ),
    ENTRY(cuGraphEventRecordNodeGetEvent, ),
    ENTRY(cuGraphEventWaitNodeGetEvent, ),
    ENTRY(cuGraphEventRecordNodeSetEvent, ),
    ENTRY(cuGraphEventWaitNodeSetEvent, ),
    ENTRY(cuGraphExecEventRecordNodeSetEvent, ),
    ENTRY(cuGraphExecEventWaitNodeSetEvent, ),
    ENTRY(cuGraphAddMemAllocNode, ),
    ENTRY(cuGraphMemAllocNodeGetParams, ),
    ENTRY(cuGraphAddMemFreeNode, ),
    ENTRY(cuGraphMemFreeNodeGetParams, ),
    ENTRY(cuDeviceGraphMemTrim, ),
    ENTRY(cuGraphAddNode, _v2),
    // graph.cc
    ENTRY(cuGraphCreate, ),
    ENTRY(cuGraphDestroy, ),
    ENTRY(cuGraphClone, ),
    ENTRY(cuGraphNodeFindInClone, ),
    ENTRY(cuGraphGetNodes, ),
    ENTRY(cuGraphGetRootNodes, ),
    ENTRY(cuGraphGetEdges, _v2),
    ENTRY(cuGraphNodeGetDependencies, _v2),
    ENTRY(cuGraphNodeGetDependentNodes, _v2),
    ENTRY(cuGraphAddDependencies, _v2),
    ENTRY(cuGraphRemoveDependencies, _v2),
    ENTRY(cuGraphNodeGetType, ),
    ENTRY(cuGraphDestroyNode, ),
    // hints.cc
    ENTRY(cuMemAdvise, _v2),
    ENTRY(cuMemPrefetchAsync, _v2),
    ENTRY(cuMemRangeGetAttribute, ),
    ENTRY(cuProfilerStart, ),
    ENTRY(cuProfilerStop, ),
    // host-memory.cc
    ENTRY(cuMemHostRegister, _v2),
    ENTRY(cuMemHostUnregister, ),
    ENTRY(cuMemHostGetDevicePointer, _v2),
    ENTRY(cuMemHostGetFlags, ),
    ENTRY(cuMemHostAlloc, ),
    ENTRY(cuMemAllocHost, _v2),
    ENTRY(cuMemFreeHost, ),
    ENTRY(cuMemAllocManaged, ),
    // launch.cc
    ENTRY(cuLaunchKernel, ),
    ENTRY(cuLaunchCooperativeKernel, ),
    ENTRY(cuLaunchKernelEx, ),
    // library.cc
    ENTRY(cuLibraryLoadData, ),
    ENTRY(cuLibraryLoadFromFile, ),
    ENTRY(cuLibraryUnload, ),
    ENTRY(cuLibraryGetKernel, ),
    ENTRY(cuLibraryGetKernelCount, ),
    ENTRY(cuLibraryEnumerateKernels, ),
    ENTRY(cuLibraryGetModule, ),
    ENTRY(cuLibraryGetGlobal, ),
    ENTRY(cuLibraryGetManaged, ),
    ENTRY(cuKernelGetFunction, ),
    ENTRY(cuKernelGetLibrary, ),
    ENTRY(cuKernelGetName, ),
    ENTRY(cuKernelGetParamInfo, ),
    ENTRY(cuKernelGetAttribute, ),
    ENTRY(cuKernelSetAttribute, ),
    ENTRY(cuKernelSetCacheConfig, ),
    // link.cc
    ENTRY(cuLinkCreate, _v2),
    ENTRY(cuLinkAddData, _v2),
    ENTRY(cuLinkAddFile, _v2),
    ENTRY(cuLinkComplete, ),
    ENTRY(cuLinkDestroy, ),
    // memory-operation.cc
    ENTRY(cuStreamWriteValue32, _v2),
    ENTRY(cuStreamWriteValue64, _v2),
    ENTRY(cuStreamWaitValue32, _v2),
    ENTRY(cuStreamWaitValue64, _v2),
    ENTRY(cuStreamBatchMemOp, _v2),
    // memory-pool.cc
    ENTRY(cuMemAllocAsync, ),
    ENTRY(cuMemAllocFromPoolAsync, ),
    ENTRY(cuMemFreeAsync, ),
    ENTRY(cuMemPoolCreate, ),
    ENTRY(cuMemPoolDestroy, ),
    ENTRY(cuDeviceGetDefaultMemPool, ),
    ENTRY(cuDeviceGetMemPool, ),
    ENTRY(cuDeviceSetMemPool, ),
    ENTRY(cuMemPoolTrimTo, ),
    ENTRY(cuMemPoolSetAttribute, ),
    ENTRY(cuMemPoolGetAttribute, ),
    ENTRY(cuMemPoolSetAccess, ),
    ENTRY(cuMemPoolGetAccess, ),
    // module.cc
    ENTRY(cuModuleLoadDataEx, ),
    ENTRY(cuModuleLoadData, ),
    ENTRY(cuModuleLoadFatBinary, ),
    ENTRY(cuModuleLoad, ),
    ENTRY(cuModuleUnload, ),
    ENTRY(cuModuleGetFunction, ),
    ENTRY(cuModuleGetFunctionCount, ),
    ENTRY(cuModuleEnumerateFunctions, ),
    ENTRY(cuModuleGetGlobal, _v2),
    ENTRY(cuModuleGetLoadingMode, ),
    // occupancy.cc
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, ),
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, ),
    ENTRY(cuOccupancyMaxPotentialBlockSizeWithFlags, ),
    ENTRY(cuOccupancyMaxPotentialBlockSize, ),
    ENTRY(cuOccupancyAvailableDynamicSMemPerBlock, ),
    // peer.cc
    ENTRY(cuDeviceCanAccessPeer, ),
    ENTRY(cuCtxEnablePeerAccess, ),
    ENTRY(cuCtxDisablePeerAccess, ),
    ENTRY(cuDeviceGetP2PAttribute, ),
    // physical.cc
    ENTRY(cuMemGetAllocationGranularity, ),
    ENTRY(cuMemAddressReserve, ),
    ENTRY(cuMemAddressFree, ),
    ENTRY(cuMemCreate, ),
    ENTRY(cuMemRelease, ),
    ENTRY(cuMemMap, ),
    ENTRY(cuMemUnmap, ),
    ENTRY(cuMemSetAccess, ),
    ENTRY(cuMemGetAccess, ),
    ENTRY(cuMemRetainAllocationHandle, ),
    ENTRY(cuMemGetAllocationPropertiesFromHandle, ),
    ENTRY(cuMemExportToShareableHandle, ),
    ENTRY(cuMemImportFromShareableHandle, ),
    // plain-memory.cc
    ENTRY(cuMemAlloc, _v2),
    ENTRY(cuMemAllocPitch, _v2),
    ENTRY(cuMemFree, _v2),
    ENTRY(cuMemGetInfo, _v2),
    ENTRY(cuMemGetAddressRange, _v2),
    // pointer-attributes.cc
    ENTRY(cuPointerGetAttribute, ),
    ENTRY(cuPointerGetAttributes, ),
    ENTRY(cuPointerSetAttribute, ),
    // primary-context.cc
    ENTRY(cuDevicePrimaryCtxRetain, ),
    ENTRY(cuDevicePrimaryCtxRelease, _v2),
    ENTRY(cuDevicePrimaryCtxReset, _v2),
    ENTRY(cuDevicePrimaryCtxSetFlags, _v2),
    ENTRY(cuDevicePrimaryCtxGetState, ),
    // stream.cc
    ENTRY(cuStreamCreateWithPriority, ),
    ENTRY(cuStreamCreate, ),
    ENTRY(cuStreamDestroy, _v2),
    ENTRY(cuStreamSynchronize, ),
    ENTRY(cuStreamQuery, ),
    ENTRY(cuStreamGetFlags, ),
    ENTRY(cuStreamGetPriority, ),
    ENTRY(cuStreamGetId, ),
    ENTRY(cuStreamGetCtx, ),
    ENTRY(cuStreamGetCtx, _v2),
    ENTRY(cuStreamGetDevice, ),
    ENTRY(cuLaunchHostFunc, ),
    ENTRY(cuStreamAddCallback, ),
    ENTRY(cuStreamAttachMemAsync, ),
    // texture.cc
    ENTRY(cuTexObjectCreate, ),
    ENTRY(cuTexObjectDestroy, ),
    ENTRY(cuTexObjectGetResourceDesc, ),
    ENTRY(cuTexObjectGetTextureDesc, ),
    ENTRY(cuTexObjectGetResourceViewDesc, ),
    ENTRY(cuSurfObjectCreate, ),
    ENTRY(cuSurfObjectDestroy, ),
    ENTRY(cuSurfObjectGetResourceDesc, ),
};

#pragma GCC diagnostic pop

#undef ENTRY

}  // namespace

std::span<const Entry> entries() { return table; }

Lookup findEntry(std::string_view name, int version, bool perThread) {
  const Entry* best = nullptr;
  Lookup found;
  for (const Entry& entry : table) {
    if (entry.name != name) continue;
    found.known = true;
    if (entry.since > version || (best && best->since >= entry.since)) continue;
    best = &entry;
  }
  if (best) found.function = perThread && best->perThread ? best->perThread : best->function;
  return found;
}

}  // namespace vgpu::emulator::api
