// Functions that behave otherwise in a runtime of CUDA 12 than in one of CUDA 13, and functions that 13 no longer has. Calls of a program
// built with CUDA 12 are redirected to these, and for all other names to the rows of 13 (docs/interposition.md). Each function here is
// named vgpu12_ and the original name, has the prototype of 12.9, and ends in a row of 13.
#include "intercept/runtime/cuda12.h"

#include <cuda.h>

#include <vector>

#include "intercept/runtime/answer.h"
#include "intercept/runtime/last-error.h"
#include "intercept/runtime/message.h"

namespace vgpu::runtime::cuda12 {
namespace {

// Copies runs of members that are the same in both structures, each given by its first and last member.
template <class To, class From>
void copyRuns(To& to, const From& from) {
#define RUN(first, last)                                                                                    \
  static_assert(offsetof(To, last) - offsetof(To, first) == offsetof(From, last) - offsetof(From, first) && \
                sizeof to.last == sizeof from.last);                                                        \
  std::memcpy(&to.first, &from.first, offsetof(To, last) + sizeof to.last - offsetof(To, first))
  RUN(name, maxGridSize);
  RUN(totalConstMem, texturePitchAlignment);
  RUN(multiProcessorCount, multiProcessorCount);
  RUN(integrated, canMapHostMemory);
  RUN(maxTexture1D, maxTexture1DMipmap);
  RUN(maxTexture2D, unifiedAddressing);
  RUN(memoryBusWidth, localL1CacheSupported);
  RUN(sharedMemPerMultiprocessor, hostNativeAtomicSupported);
  RUN(pageableMemoryAccess, cooperativeLaunch);
  RUN(sharedMemPerBlockOptin, unifiedFunctionPointers);
#undef RUN
}

// Reads the members that 13 has as attributes only. cooperativeMultiDeviceLaunch is not read and stays 0.
cudaError_t readRest(DeviceProperties& to, int device) {
  struct {
    int DeviceProperties::*member;
    cudaDeviceAttr attribute;
  } const rows[] = {{&DeviceProperties::clockRate, cudaDevAttrClockRate},
                    {&DeviceProperties::deviceOverlap, cudaDevAttrGpuOverlap},
                    {&DeviceProperties::kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout},
                    {&DeviceProperties::computeMode, cudaDevAttrComputeMode},
                    {&DeviceProperties::maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth},
                    {&DeviceProperties::memoryClockRate, cudaDevAttrMemoryClockRate},
                    {&DeviceProperties::singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio}};
  for (auto& row : rows)
    if (cudaError_t error = cudaDeviceGetAttribute(&(to.*row.member), row.attribute, device)) return error;
  return cudaSuccess;
}

cudaError_t launchTogether(const LaunchParams* launches, unsigned count, unsigned flags) {
  std::vector<CUDA_LAUNCH_PARAMS> all;
  for (unsigned i = 0; launches != nullptr && i < count; ++i) {
    const LaunchParams& one = launches[i];
    cudaKernel_t kernel = nullptr;
    if (cudaError_t error = cudaGetKernel(&kernel, one.function)) return error;
    void* either = kernel;
    all.push_back({static_cast<CUfunction>(either), one.grid.x, one.grid.y, one.grid.z, one.block.x, one.block.y, one.block.z,
                   static_cast<unsigned>(one.sharedBytes), one.stream, one.arguments});
  }
  return remember(answer(cuLaunchCooperativeKernelMultiDevice(all.data(), static_cast<unsigned>(all.size()), flags)));
}

cudaError_t readProperties(DeviceProperties* to, int device) {
  cudaDeviceProp properties{};
  if (cudaError_t error = cudaGetDeviceProperties(to == nullptr ? nullptr : &properties, device)) return error;
  *to = {};
  copyRuns(*to, properties);
  return readRest(*to, device);
}

cudaError_t chooseDevice(int* device, const DeviceProperties* wanted) {
  if (wanted == nullptr) return cudaChooseDevice(device, nullptr);
  cudaDeviceProp properties{};
  copyRuns(properties, *wanted);
  return cudaChooseDevice(device, &properties);
}

cudaMemLocation placeOf(int device) {
  if (device == cudaCpuDeviceId) return {cudaMemLocationTypeHost, 0};
  return {cudaMemLocationTypeDevice, device};
}

// The device is ignored for advice that names no location.
cudaMemLocation placeOf(cudaMemoryAdvise advice, int device) {
  bool isOfNone = advice == cudaMemAdviseSetReadMostly || advice == cudaMemAdviseUnsetReadMostly ||
                  advice == cudaMemAdviseUnsetPreferredLocation;
  return placeOf(isOfNone ? 0 : device);
}

// The error of a batch of copies, which belongs to no copy in particular.
cudaError_t ofBatch(cudaError_t result, size_t* failed) {
  if (result != cudaSuccess && failed != nullptr) *failed = SIZE_MAX;
  return result;
}

// Functions of CUDA 11 that a runtime of 12 still has, for programs that look them up by name.
cudaError_t refuse(const char* name) {
  say({name, " is an interface of CUDA 11, which is not supported; it returns cudaErrorNotSupported"});
  return remember(cudaErrorNotSupported);
}

}  // namespace
}  // namespace vgpu::runtime::cuda12

using namespace vgpu::runtime::cuda12;

#define CUDA12(name, parameters, ...) \
  extern "C" cudaError_t vgpu12_##name parameters { return __VA_ARGS__; }
#define CUDA12_FLAVOUR(name, to, parameters, ...)   \
  extern "C" cudaError_t vgpu12_##name parameters { \
    [[maybe_unused]] constexpr auto* now = &to;     \
    return __VA_ARGS__;                             \
  }
// Both flavours of a function that calls `to`, which the expression names now().
#define CUDA12_STREAM(name, to, parameters, ...)    \
  extern "C" decltype(to) to##_ptsz;                \
  CUDA12_FLAVOUR(name, to, parameters, __VA_ARGS__) \
  CUDA12_FLAVOUR(name##_ptsz, to##_ptsz, parameters, __VA_ARGS__)

// ------------------------------------------------------------------ devices

CUDA12(cudaRuntimeGetVersion, (int* to), to == nullptr ? cudaRuntimeGetVersion(to) : (*to = version, cudaSuccess))
CUDA12(cudaGetDeviceProperties_v2, (DeviceProperties * to, int device), readProperties(to, device))
CUDA12(cudaChooseDevice, (int* device, const DeviceProperties* wanted), chooseDevice(device, wanted))
CUDA12(cudaGetDeviceProperties, (), refuse("cudaGetDeviceProperties"))
CUDA12_STREAM(cudaGetDriverEntryPoint, cudaGetDriverEntryPointByVersion,
              (const char* symbol, void** function, unsigned long long flags, cudaDriverEntryPointQueryResult* status),
              now(symbol, function, version, flags, status))
CUDA12(cudaThreadExit, (), cudaDeviceReset())
CUDA12(cudaThreadSynchronize, (), cudaDeviceSynchronize())
CUDA12(cudaThreadSetLimit, (cudaLimit limit, size_t value), cudaDeviceSetLimit(limit, value))
CUDA12(cudaThreadGetLimit, (size_t * value, cudaLimit limit), cudaDeviceGetLimit(value, limit))
CUDA12(cudaThreadGetCacheConfig, (cudaFuncCache * config), cudaDeviceGetCacheConfig(config))
CUDA12(cudaThreadSetCacheConfig, (cudaFuncCache config), cudaDeviceSetCacheConfig(config))
// These served devices without double precision; no supported device lacks it.
CUDA12(cudaSetDoubleForDevice, (double*), cudaSuccess)
CUDA12(cudaSetDoubleForHost, (double*), cudaSuccess)
CUDA12(cudaLaunchCooperativeKernelMultiDevice, (const LaunchParams* launches, unsigned count, unsigned flags),
       launchTogether(launches, count, flags))

// ------------------------------------------------------------------ memory

CUDA12(cudaPointerGetAttributes, (cudaPointerAttributes * to, const void* memory), [&] {
  Grown<cudaPointerAttributes> attributes(to);
  return attributes.give(cudaPointerGetAttributes(attributes.out(), memory), to);
}())
CUDA12(cudaMemAdvise, (const void* memory, size_t bytes, cudaMemoryAdvise advice, int device),
       cudaMemAdvise(memory, bytes, advice, placeOf(advice, device)))
CUDA12(cudaMemAdvise_v2, (const void* memory, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location),
       cudaMemAdvise(memory, bytes, advice, location))
CUDA12_STREAM(cudaMemPrefetchAsync, cudaMemPrefetchAsync, (const void* memory, size_t bytes, int device, cudaStream_t stream),
              now(memory, bytes, placeOf(device), 0, stream))
CUDA12_FLAVOUR(cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync,
               (const void* memory, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream),
               now(memory, bytes, location, flags, stream))
CUDA12_FLAVOUR(cudaMemPrefetchAsync_v2_ptsz, cudaMemPrefetchAsync_ptsz,
               (const void* memory, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream),
               now(memory, bytes, location, flags, stream))
CUDA12_STREAM(cudaMemcpyBatchAsync, cudaMemcpyBatchAsync,
              (void** to, void** from, size_t* sizes, size_t count, cudaMemcpyAttributes* attributes, size_t* indices,
               size_t attributeCount, size_t* failed, cudaStream_t stream),
              ofBatch(now(to, from, sizes, count, attributes, indices, attributeCount, stream), failed))
CUDA12_STREAM(cudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync,
              (size_t count, cudaMemcpy3DBatchOp* operations, size_t* failed, unsigned long long flags, cudaStream_t stream),
              ofBatch(now(count, operations, flags, stream), failed))

// ------------------------------------------------------------------ textures, memory of other interfaces

CUDA12(cudaCreateTextureObject,
       (cudaTextureObject_t * object, const cudaResourceDesc* resource, const cudaTextureDesc* texture,
        const cudaResourceViewDesc* view),
       cudaCreateTextureObject(object, Grown(resource).in(), texture, Grown(view).in()))
CUDA12(cudaCreateSurfaceObject, (cudaSurfaceObject_t * object, const cudaResourceDesc* resource),
       cudaCreateSurfaceObject(object, Grown(resource).in()))
CUDA12(cudaGetTextureObjectResourceDesc, (cudaResourceDesc * to, cudaTextureObject_t object), [&] {
  Grown<cudaResourceDesc> resource(to);
  return resource.give(cudaGetTextureObjectResourceDesc(resource.out(), object), to);
}())
CUDA12(cudaGetTextureObjectResourceViewDesc, (cudaResourceViewDesc * to, cudaTextureObject_t object), [&] {
  Grown<cudaResourceViewDesc> view(to);
  return view.give(cudaGetTextureObjectResourceViewDesc(view.out(), object), to);
}())
CUDA12(cudaGetSurfaceObjectResourceDesc, (cudaResourceDesc * to, cudaSurfaceObject_t object), [&] {
  Grown<cudaResourceDesc> resource(to);
  return resource.give(cudaGetSurfaceObjectResourceDesc(resource.out(), object), to);
}())
CUDA12(cudaSignalExternalSemaphoresAsync_v2, (), cudaSignalExternalSemaphoresAsync(nullptr, nullptr, 0, nullptr))
CUDA12(cudaSignalExternalSemaphoresAsync_v2_ptsz, (), cudaSignalExternalSemaphoresAsync(nullptr, nullptr, 0, nullptr))
CUDA12(cudaWaitExternalSemaphoresAsync_v2, (), cudaWaitExternalSemaphoresAsync(nullptr, nullptr, 0, nullptr))
CUDA12(cudaWaitExternalSemaphoresAsync_v2_ptsz, (), cudaWaitExternalSemaphoresAsync(nullptr, nullptr, 0, nullptr))

// ------------------------------------------------------------------ events, captures, graphs

CUDA12(cudaEventElapsedTime_v2, (float* milliseconds, cudaEvent_t start, cudaEvent_t end),
       cudaEventElapsedTime(milliseconds, start, end))
CUDA12_STREAM(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo,
              (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id),
              now(stream, status, id, nullptr, nullptr, nullptr, nullptr))
CUDA12_FLAVOUR(cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo,
               (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                const cudaGraphNode_t** nodes, size_t* count),
               now(stream, status, id, graph, nodes, nullptr, count))
CUDA12_FLAVOUR(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo_ptsz,
               (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                const cudaGraphNode_t** nodes, size_t* count),
               now(stream, status, id, graph, nodes, nullptr, count))
CUDA12_FLAVOUR(cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo,
               (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges, size_t* count),
               now(stream, status, id, graph, nodes, edges, count))
CUDA12_FLAVOUR(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo_ptsz,
               (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges, size_t* count),
               now(stream, status, id, graph, nodes, edges, count))
CUDA12_STREAM(cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies,
              (cudaStream_t stream, cudaGraphNode_t* nodes, size_t count, unsigned flags),
              now(stream, nodes, nullptr, count, flags))
CUDA12_FLAVOUR(cudaStreamUpdateCaptureDependencies_v2, cudaStreamUpdateCaptureDependencies,
               (cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges, size_t count, unsigned flags),
               now(stream, nodes, edges, count, flags))
CUDA12_FLAVOUR(cudaStreamUpdateCaptureDependencies_v2_ptsz, cudaStreamUpdateCaptureDependencies_ptsz,
               (cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges, size_t count, unsigned flags),
               now(stream, nodes, edges, count, flags))

// Two entries each: without edge data, and with it under a name with _v2.
#define CUDA12_EDGES(name, plain, withEdges, without, with) \
  CUDA12_FLAVOUR(name, name, plain, now without)            \
  CUDA12_FLAVOUR(name##_v2, name, withEdges, now with)
CUDA12_EDGES(cudaGraphAddDependencies, (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count),
             (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
              size_t count),
             (graph, from, to, nullptr, count), (graph, from, to, edges, count))
CUDA12_EDGES(cudaGraphRemoveDependencies,
             (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count),
             (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
              size_t count),
             (graph, from, to, nullptr, count), (graph, from, to, edges, count))
CUDA12_EDGES(cudaGraphGetEdges, (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count),
             (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges, size_t* count),
             (graph, from, to, nullptr, count), (graph, from, to, edges, count))
CUDA12_EDGES(cudaGraphNodeGetDependencies, (cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count),
             (cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges, size_t* count),
             (node, nodes, nullptr, count), (node, nodes, edges, count))
CUDA12_EDGES(cudaGraphNodeGetDependentNodes, (cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count),
             (cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges, size_t* count),
             (node, nodes, nullptr, count), (node, nodes, edges, count))
CUDA12_EDGES(cudaGraphAddNode,
             (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t count,
              cudaGraphNodeParams* parameters),
             (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before, const cudaGraphEdgeData* edges,
              size_t count, cudaGraphNodeParams* parameters),
             (node, graph, before, nullptr, count, parameters), (node, graph, before, edges, count, parameters))
