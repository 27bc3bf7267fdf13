#include "entry-table.h"

#include "casts-unsafe.h"
#include "stream.h"

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

// An entry is a row: base name, version suffix, the version of CUDA that it came with (cudaTypedefs.h).
#define ENTRY(name, suffix, since) \
  { #name, since, asAddress(&name##suffix), nullptr }
#define STREAM_ENTRY(name, suffix, since) \
  { #name, since, asAddress(&name##suffix), asAddress(&PerThread <&name##suffix>::call) }

// The deprecated ones are entries like any other.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
const Entry table[] = {
    // array.cc
    ENTRY(cuArray3DCreate, _v2, 3020),
    ENTRY(cuArrayCreate, _v2, 3020),
    ENTRY(cuArrayDestroy, , 2000),
    ENTRY(cuArray3DGetDescriptor, _v2, 3020),
    ENTRY(cuArrayGetDescriptor, _v2, 3020),
    ENTRY(cuMipmappedArrayCreate, , 5000),
    ENTRY(cuMipmappedArrayGetLevel, , 5000),
    ENTRY(cuMipmappedArrayDestroy, , 5000),
    // capture.cc
    STREAM_ENTRY(cuStreamBeginCapture, _v2, 10010),
    STREAM_ENTRY(cuStreamBeginCaptureToGraph, , 12030),
    STREAM_ENTRY(cuStreamEndCapture, , 10000),
    STREAM_ENTRY(cuStreamIsCapturing, , 10000),
    STREAM_ENTRY(cuStreamGetCaptureInfo, _v3, 12030),
    STREAM_ENTRY(cuStreamGetCaptureInfo, _v2, 11030),
    STREAM_ENTRY(cuStreamUpdateCaptureDependencies, _v2, 12030),
    ENTRY(cuThreadExchangeStreamCaptureMode, , 10010),
    // context.cc
    ENTRY(cuCtxCreate, _v2, 3020),
    ENTRY(cuCtxCreate, _v3, 11040),
    ENTRY(cuCtxCreate, _v4, 12050),
    ENTRY(cuCtxDestroy, _v2, 4000),
    ENTRY(cuCtxSetCurrent, , 4000),
    ENTRY(cuCtxGetCurrent, , 4000),
    ENTRY(cuCtxPushCurrent, _v2, 4000),
    ENTRY(cuCtxPopCurrent, _v2, 4000),
    ENTRY(cuCtxGetDevice, , 2000),
    ENTRY(cuCtxGetDevice, _v2, 13000),
    ENTRY(cuCtxSynchronize, , 2000),
    ENTRY(cuCtxSynchronize, _v2, 13000),
    ENTRY(cuCtxGetFlags, , 7000),
    ENTRY(cuCtxSetFlags, , 12010),
    ENTRY(cuCtxGetId, , 12000),
    ENTRY(cuCtxGetApiVersion, , 3020),
    ENTRY(cuCtxGetLimit, , 3010),
    ENTRY(cuCtxSetLimit, , 3010),
    ENTRY(cuCtxGetCacheConfig, , 3020),
    ENTRY(cuCtxSetCacheConfig, , 3020),
    ENTRY(cuCtxGetSharedMemConfig, , 4020),
    ENTRY(cuCtxSetSharedMemConfig, , 4020),
    ENTRY(cuCtxGetStreamPriorityRange, , 5050),
    ENTRY(cuCtxResetPersistingL2Cache, , 11000),
    ENTRY(cuCtxGetExecAffinity, , 11040),
    ENTRY(cuCtxDetach, , 2000),
    // copy-3d.cc
    STREAM_ENTRY(cuMemcpy2D, _v2, 3020),
    STREAM_ENTRY(cuMemcpy2DUnaligned, _v2, 3020),
    STREAM_ENTRY(cuMemcpy2DAsync, _v2, 3020),
    STREAM_ENTRY(cuMemcpy3D, _v2, 3020),
    STREAM_ENTRY(cuMemcpy3DAsync, _v2, 3020),
    STREAM_ENTRY(cuMemcpy3DPeer, , 4000),
    STREAM_ENTRY(cuMemcpy3DPeerAsync, , 4000),
    STREAM_ENTRY(cuMemcpyHtoA, _v2, 3020),
    STREAM_ENTRY(cuMemcpyAtoH, _v2, 3020),
    STREAM_ENTRY(cuMemcpyHtoAAsync, _v2, 3020),
    STREAM_ENTRY(cuMemcpyAtoHAsync, _v2, 3020),
    STREAM_ENTRY(cuMemcpyDtoA, _v2, 3020),
    STREAM_ENTRY(cuMemcpyAtoD, _v2, 3020),
    STREAM_ENTRY(cuMemcpyAtoA, _v2, 3020),
    // copy.cc
    STREAM_ENTRY(cuMemcpy, , 4000),
    STREAM_ENTRY(cuMemcpyAsync, , 4000),
    STREAM_ENTRY(cuMemcpyHtoD, _v2, 3020),
    STREAM_ENTRY(cuMemcpyHtoDAsync, _v2, 3020),
    STREAM_ENTRY(cuMemcpyDtoH, _v2, 3020),
    STREAM_ENTRY(cuMemcpyDtoHAsync, _v2, 3020),
    STREAM_ENTRY(cuMemcpyDtoD, _v2, 3020),
    STREAM_ENTRY(cuMemcpyDtoDAsync, _v2, 3020),
    STREAM_ENTRY(cuMemcpyPeer, , 4000),
    STREAM_ENTRY(cuMemcpyPeerAsync, , 4000),
    // device.cc
    ENTRY(cuDeviceGet, , 2000),
    ENTRY(cuDeviceGetCount, , 2000),
    ENTRY(cuDeviceGetName, , 2000),
    ENTRY(cuDeviceGetUuid, _v2, 11040),
    ENTRY(cuDeviceTotalMem, _v2, 3020),
    ENTRY(cuDeviceGetAttribute, , 2000),
    ENTRY(cuDeviceComputeCapability, , 2000),
    ENTRY(cuDeviceGetProperties, , 2000),
    ENTRY(cuDeviceGetPCIBusId, , 4010),
    ENTRY(cuDeviceGetByPCIBusId, , 4010),
    ENTRY(cuDeviceGetLuid, , 10000),
    ENTRY(cuDeviceGetTexture1DLinearMaxWidth, , 11010),
    ENTRY(cuDeviceGetExecAffinitySupport, , 11040),
    ENTRY(cuFlushGPUDirectRDMAWrites, , 11030),
    // driver.cc
    ENTRY(cuInit, , 2000),
    ENTRY(cuDriverGetVersion, , 2020),
    // error.cc
    ENTRY(cuGetErrorName, , 6000),
    ENTRY(cuGetErrorString, , 6000),
    // event.cc
    ENTRY(cuEventCreate, , 2000),
    ENTRY(cuEventDestroy, _v2, 4000),
    STREAM_ENTRY(cuEventRecordWithFlags, , 11010),
    STREAM_ENTRY(cuEventRecord, , 2000),
    STREAM_ENTRY(cuStreamWaitEvent, , 3020),
    ENTRY(cuEventQuery, , 2000),
    ENTRY(cuEventSynchronize, , 2000),
    ENTRY(cuEventElapsedTime, _v2, 12080),
    ENTRY(cuEventElapsedTime, , 2000),
    // fill.cc
    STREAM_ENTRY(cuMemsetD8, _v2, 3020),
    STREAM_ENTRY(cuMemsetD8Async, , 3020),
    STREAM_ENTRY(cuMemsetD2D8, _v2, 3020),
    STREAM_ENTRY(cuMemsetD2D8Async, , 3020),
    STREAM_ENTRY(cuMemsetD16, _v2, 3020),
    STREAM_ENTRY(cuMemsetD16Async, , 3020),
    STREAM_ENTRY(cuMemsetD2D16, _v2, 3020),
    STREAM_ENTRY(cuMemsetD2D16Async, , 3020),
    STREAM_ENTRY(cuMemsetD32, _v2, 3020),
    STREAM_ENTRY(cuMemsetD32Async, , 3020),
    STREAM_ENTRY(cuMemsetD2D32, _v2, 3020),
    STREAM_ENTRY(cuMemsetD2D32Async, , 3020),
    // function.cc
    ENTRY(cuFuncGetAttribute, , 2020),
    ENTRY(cuFuncSetAttribute, , 9000),
    ENTRY(cuFuncSetCacheConfig, , 3000),
    ENTRY(cuFuncSetSharedMemConfig, , 4020),
    ENTRY(cuFuncGetName, , 12030),
    ENTRY(cuFuncGetModule, , 11000),
    ENTRY(cuFuncGetParamInfo, , 12040),
    ENTRY(cuFuncIsLoaded, , 12040),
    ENTRY(cuFuncLoad, , 12040),
    // get-proc-address.cc
    ENTRY(cuGetProcAddress, _v2, 12000),
    // graph-exec.cc
    ENTRY(cuGraphInstantiateWithFlags, , 11040),
    STREAM_ENTRY(cuGraphInstantiateWithParams, , 12000),
    ENTRY(cuGraphExecGetFlags, , 12000),
    ENTRY(cuGraphExecDestroy, , 10000),
    STREAM_ENTRY(cuGraphLaunch, , 10000),
    STREAM_ENTRY(cuGraphUpload, , 11010),
    ENTRY(cuGraphExecUpdate, _v2, 12000),
    ENTRY(cuGraphNodeSetEnabled, , 11060),
    ENTRY(cuGraphNodeGetEnabled, , 11060),
    // graph-node.cc
    ENTRY(cuGraphAddKernelNode, _v2, 12000),
    ENTRY(cuGraphKernelNodeGetParams, _v2, 12000),
    ENTRY(cuGraphKernelNodeSetParams, _v2, 12000),
    ENTRY(cuGraphExecKernelNodeSetParams, _v2, 12000),
    ENTRY(cuGraphAddMemcpyNode, , 10000),
    ENTRY(cuGraphMemcpyNodeGetParams, , 10000),
    ENTRY(cuGraphMemcpyNodeSetParams, , 10000),
    ENTRY(cuGraphExecMemcpyNodeSetParams, , 10020),
    ENTRY(cuGraphAddMemsetNode, , 10000),
    ENTRY(cuGraphMemsetNodeGetParams, , 10000),
    ENTRY(cuGraphMemsetNodeSetParams, , 10000),
    ENTRY(cuGraphExecMemsetNodeSetParams, , 10020),
    ENTRY(cuGraphAddHostNode, , 10000),
    ENTRY(cuGraphHostNodeGetParams, , 10000),
    ENTRY(cuGraphHostNodeSetParams, , 10000),
    ENTRY(cuGraphExecHostNodeSetParams, , 10020),
    ENTRY(cuGraphAddEmptyNode, , 10000),
    ENTRY(cuGraphAddBatchMemOpNode, , 11070),
    ENTRY(cuGraphBatchMemOpNodeGetParams, , 11070),
    ENTRY(cuGraphBatchMemOpNodeSetParams, , 11070),
    ENTRY(cuGraphExecBatchMemOpNodeSetParams, , 11070),
    // graph-special.cc
    ENTRY(cuGraphAddChildGraphNode, , 10000),
    ENTRY(cuGraphChildGraphNodeGetGraph, , 10000),
    ENTRY(cuGraphAddEventRecordNode, , 11010),
    ENTRY(cuGraphAddEventWaitNode, , 11010),
    ENTRY(cuGraphEventRecordNodeGetEvent, , 11010),
    ENTRY(cuGraphEventWaitNodeGetEvent, , 11010),
    ENTRY(cuGraphEventRecordNodeSetEvent, , 11010),
    ENTRY(cuGraphEventWaitNodeSetEvent, , 11010),
    ENTRY(cuGraphExecEventRecordNodeSetEvent, , 11010),
    ENTRY(cuGraphExecEventWaitNodeSetEvent, , 11010),
    ENTRY(cuGraphAddMemAllocNode, , 11040),
    ENTRY(cuGraphMemAllocNodeGetParams, , 11040),
    ENTRY(cuGraphAddMemFreeNode, , 11040),
    ENTRY(cuGraphMemFreeNodeGetParams, , 11040),
    ENTRY(cuDeviceGraphMemTrim, , 11040),
    ENTRY(cuGraphAddNode, _v2, 12030),
    // graph.cc
    ENTRY(cuGraphCreate, , 10000),
    ENTRY(cuGraphDestroy, , 10000),
    ENTRY(cuGraphClone, , 10000),
    ENTRY(cuGraphNodeFindInClone, , 10000),
    ENTRY(cuGraphGetNodes, , 10000),
    ENTRY(cuGraphGetRootNodes, , 10000),
    ENTRY(cuGraphGetEdges, _v2, 12030),
    ENTRY(cuGraphNodeGetDependencies, _v2, 12030),
    ENTRY(cuGraphNodeGetDependentNodes, _v2, 12030),
    ENTRY(cuGraphAddDependencies, _v2, 12030),
    ENTRY(cuGraphRemoveDependencies, _v2, 12030),
    ENTRY(cuGraphNodeGetType, , 10000),
    ENTRY(cuGraphDestroyNode, , 10000),
    // hints.cc
    ENTRY(cuMemAdvise, _v2, 12020),
    STREAM_ENTRY(cuMemPrefetchAsync, _v2, 12020),
    ENTRY(cuMemRangeGetAttribute, , 8000),
    ENTRY(cuProfilerStart, , 2000),
    ENTRY(cuProfilerStop, , 2000),
    // host-memory.cc
    ENTRY(cuMemHostRegister, _v2, 6050),
    ENTRY(cuMemHostUnregister, , 4000),
    ENTRY(cuMemHostGetDevicePointer, _v2, 3020),
    ENTRY(cuMemHostGetFlags, , 2030),
    ENTRY(cuMemHostAlloc, , 2020),
    ENTRY(cuMemAllocHost, _v2, 3020),
    ENTRY(cuMemFreeHost, , 2000),
    ENTRY(cuMemAllocManaged, , 6000),
    // launch.cc
    STREAM_ENTRY(cuLaunchKernel, , 4000),
    STREAM_ENTRY(cuLaunchCooperativeKernel, , 9000),
    STREAM_ENTRY(cuLaunchKernelEx, , 11060),
    // library.cc
    ENTRY(cuLibraryLoadData, , 12000),
    ENTRY(cuLibraryLoadFromFile, , 12000),
    ENTRY(cuLibraryUnload, , 12000),
    ENTRY(cuLibraryGetKernel, , 12000),
    ENTRY(cuLibraryGetKernelCount, , 12040),
    ENTRY(cuLibraryEnumerateKernels, , 12040),
    ENTRY(cuLibraryGetModule, , 12000),
    ENTRY(cuLibraryGetGlobal, , 12000),
    ENTRY(cuLibraryGetManaged, , 12000),
    ENTRY(cuKernelGetFunction, , 12000),
    ENTRY(cuKernelGetLibrary, , 12050),
    ENTRY(cuKernelGetName, , 12030),
    ENTRY(cuKernelGetParamInfo, , 12040),
    ENTRY(cuKernelGetAttribute, , 12000),
    ENTRY(cuKernelSetAttribute, , 12000),
    ENTRY(cuKernelSetCacheConfig, , 12000),
    // link.cc
    ENTRY(cuLinkCreate, _v2, 6050),
    ENTRY(cuLinkAddData, _v2, 6050),
    ENTRY(cuLinkAddFile, _v2, 6050),
    ENTRY(cuLinkComplete, , 5050),
    ENTRY(cuLinkDestroy, , 5050),
    // memory-operation.cc
    STREAM_ENTRY(cuStreamWriteValue32, _v2, 11070),
    STREAM_ENTRY(cuStreamWriteValue64, _v2, 11070),
    STREAM_ENTRY(cuStreamWaitValue32, _v2, 11070),
    STREAM_ENTRY(cuStreamWaitValue64, _v2, 11070),
    STREAM_ENTRY(cuStreamBatchMemOp, _v2, 11070),
    // memory-pool.cc
    STREAM_ENTRY(cuMemAllocAsync, , 11020),
    STREAM_ENTRY(cuMemAllocFromPoolAsync, , 11020),
    STREAM_ENTRY(cuMemFreeAsync, , 11020),
    ENTRY(cuMemPoolCreate, , 11020),
    ENTRY(cuMemPoolDestroy, , 11020),
    ENTRY(cuDeviceGetDefaultMemPool, , 11020),
    ENTRY(cuDeviceGetMemPool, , 11020),
    ENTRY(cuDeviceSetMemPool, , 11020),
    ENTRY(cuMemPoolTrimTo, , 11020),
    ENTRY(cuMemPoolSetAttribute, , 11020),
    ENTRY(cuMemPoolGetAttribute, , 11020),
    ENTRY(cuMemPoolSetAccess, , 11020),
    ENTRY(cuMemPoolGetAccess, , 11020),
    // module.cc
    ENTRY(cuModuleLoadDataEx, , 2010),
    ENTRY(cuModuleLoadData, , 2000),
    ENTRY(cuModuleLoadFatBinary, , 2000),
    ENTRY(cuModuleLoad, , 2000),
    ENTRY(cuModuleUnload, , 2000),
    ENTRY(cuModuleGetFunction, , 2000),
    ENTRY(cuModuleGetFunctionCount, , 12040),
    ENTRY(cuModuleEnumerateFunctions, , 12040),
    ENTRY(cuModuleGetGlobal, _v2, 3020),
    ENTRY(cuModuleGetLoadingMode, , 11070),
    // occupancy.cc
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, , 7000),
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, , 6050),
    ENTRY(cuOccupancyMaxPotentialBlockSizeWithFlags, , 7000),
    ENTRY(cuOccupancyMaxPotentialBlockSize, , 6050),
    ENTRY(cuOccupancyAvailableDynamicSMemPerBlock, , 10020),
    // peer.cc
    ENTRY(cuDeviceCanAccessPeer, , 4000),
    ENTRY(cuCtxEnablePeerAccess, , 4000),
    ENTRY(cuCtxDisablePeerAccess, , 4000),
    ENTRY(cuDeviceGetP2PAttribute, , 8000),
    // physical.cc
    ENTRY(cuMemGetAllocationGranularity, , 10020),
    ENTRY(cuMemAddressReserve, , 10020),
    ENTRY(cuMemAddressFree, , 10020),
    ENTRY(cuMemCreate, , 10020),
    ENTRY(cuMemRelease, , 10020),
    ENTRY(cuMemMap, , 10020),
    ENTRY(cuMemUnmap, , 10020),
    ENTRY(cuMemSetAccess, , 10020),
    ENTRY(cuMemGetAccess, , 10020),
    ENTRY(cuMemRetainAllocationHandle, , 11000),
    ENTRY(cuMemGetAllocationPropertiesFromHandle, , 10020),
    ENTRY(cuMemExportToShareableHandle, , 10020),
    ENTRY(cuMemImportFromShareableHandle, , 10020),
    // plain-memory.cc
    ENTRY(cuMemAlloc, _v2, 3020),
    ENTRY(cuMemAllocPitch, _v2, 3020),
    ENTRY(cuMemFree, _v2, 3020),
    ENTRY(cuMemGetInfo, _v2, 3020),
    ENTRY(cuMemGetAddressRange, _v2, 3020),
    // pointer-attributes.cc
    ENTRY(cuPointerGetAttribute, , 4000),
    ENTRY(cuPointerGetAttributes, , 7000),
    ENTRY(cuPointerSetAttribute, , 6000),
    // primary-context.cc
    ENTRY(cuDevicePrimaryCtxRetain, , 7000),
    ENTRY(cuDevicePrimaryCtxRelease, _v2, 11000),
    ENTRY(cuDevicePrimaryCtxReset, _v2, 11000),
    ENTRY(cuDevicePrimaryCtxSetFlags, _v2, 11000),
    ENTRY(cuDevicePrimaryCtxGetState, , 7000),
    // stream.cc
    ENTRY(cuStreamCreateWithPriority, , 5050),
    ENTRY(cuStreamCreate, , 2000),
    ENTRY(cuStreamDestroy, _v2, 4000),
    STREAM_ENTRY(cuStreamSynchronize, , 2000),
    STREAM_ENTRY(cuStreamQuery, , 2000),
    STREAM_ENTRY(cuStreamGetFlags, , 5050),
    STREAM_ENTRY(cuStreamGetPriority, , 5050),
    STREAM_ENTRY(cuStreamGetId, , 12000),
    STREAM_ENTRY(cuStreamGetCtx, , 9020),
    STREAM_ENTRY(cuStreamGetCtx, _v2, 12050),
    STREAM_ENTRY(cuStreamGetDevice, , 12080),
    STREAM_ENTRY(cuLaunchHostFunc, , 10000),
    STREAM_ENTRY(cuStreamAddCallback, , 5000),
    STREAM_ENTRY(cuStreamAttachMemAsync, , 6000),
    // texture.cc
    ENTRY(cuTexObjectCreate, , 5000),
    ENTRY(cuTexObjectDestroy, , 5000),
    ENTRY(cuTexObjectGetResourceDesc, , 5000),
    ENTRY(cuTexObjectGetTextureDesc, , 5000),
    ENTRY(cuTexObjectGetResourceViewDesc, , 5000),
    ENTRY(cuSurfObjectCreate, , 5000),
    ENTRY(cuSurfObjectDestroy, , 5000),
    ENTRY(cuSurfObjectGetResourceDesc, , 5000),
};

#pragma GCC diagnostic pop

#undef ENTRY
#undef STREAM_ENTRY

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
