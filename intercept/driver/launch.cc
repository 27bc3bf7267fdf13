// Launches: checked against the device's and the function's limits, as CUDA does immediately; then posted as one frame.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "intercept/driver/shared.h"
#include "intercept/session/graph/device-node.h"
#include "intercept/session/graph/node-attributes.h"
#include "intercept/session/kernel-parameters.h"
#include "intercept/session/launch-attributes.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// The error for too many threads: because of registers, the launch bounds or the device's limit.
CUresult tooManyThreads(const DeviceInfo& device, CUfunction function, uint64_t threads) {
  auto limit = [&](CUdevice_attribute which) { return static_cast<uint64_t>(device.attribute(which)); };
  if (threads > limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) return CUDA_ERROR_INVALID_VALUE;
  int registers = 0;
  if (CUresult error = cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function)) return error;
  bool fit = static_cast<uint64_t>(registers) * threads <= limit(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  return fit ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

// All blocks of a cooperative launch must be resident at once on the device, or on the multiprocessors of the stream's green context.
CUresult checkCooperative(Thread& thread, uint64_t stream, CUfunction function, const LaunchShape& shape) {
  const uint64_t threads = uint64_t{shape.blockX} * shape.blockY * shape.blockZ;
  const DeviceInfo& device = thread.session.devices[thread.deviceOf(stream)];
  if (device.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  int resident = 0;
  if (CUresult error = cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, function, static_cast<int>(threads),
                                                                   shape.sharedBytes))
    return error;
  auto fit = static_cast<uint64_t>(resident) * GreenContexts::multiprocessorsOf(thread, stream);
  // The first two dimensions first: the product of all three can exceed 64 bits.
  uint64_t layer = uint64_t{shape.gridX} * shape.gridY;
  return layer > fit || layer * shape.gridZ > fit ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

// Checks the cluster size that the launch requests, or else the kernel's own. Limits: CUDA C++ Programming Guide, "Thread Block Clusters"
// (8 blocks), and cuFuncSetAttribute.
CUresult checkClusters(const DeviceInfo& device, CUfunction handle, const FunctionLayout& function, const LaunchShape& shape,
                       const std::optional<ClusterSize>& asked) {
  const bool hasOwn = function.hasCluster();
  if (!asked && !hasOwn) return CUDA_SUCCESS;
  const ClusterSize own{function.cluster[0], function.cluster[1], function.cluster[2]}, cluster = asked.value_or(own);
  if (hasOwn && cluster != own) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  uint64_t blocks = std::min<uint64_t>(uint64_t{cluster[0]} * cluster[1], UINT32_MAX) * cluster[2];
  if (blocks == 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (blocks > 1 && device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  int allowsMore = 0;
  constexpr uint64_t portable = 8, most = 16;
  if (blocks > portable)
    if (CUresult error = cuFuncGetAttribute(&allowsMore, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, handle)) return error;
  bool divides = shape.gridX % cluster[0] == 0 && shape.gridY % cluster[1] == 0 && shape.gridZ % cluster[2] == 0;
  return divides && blocks <= (allowsMore ? most : portable) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

// The errors that CUDA returns from the launch itself because of the device's and the function's properties (docs/refusals.md).
CUresult check(const DeviceInfo& device, CUfunction handle, const FunctionLayout& function, const LaunchShape& shape,
               const std::optional<ClusterSize>* asked = nullptr) {
  uint64_t threads = uint64_t{shape.blockX} * shape.blockY * shape.blockZ;
  if (!device.allows(shape)) return CUDA_ERROR_INVALID_VALUE;
  if (threads > function.maxPlainThreads.load(std::memory_order_relaxed) || asked != nullptr) [[unlikely]] {
    if (threads > function.maxThreadsPerBlock) return tooManyThreads(device, handle, threads);
    if (CUresult refused = checkClusters(device, handle, function, shape, asked == nullptr ? std::nullopt : *asked)) return refused;
  }
  if (shape.sharedBytes > function.maxDynamicSharedBytes.load(std::memory_order_relaxed))
    return shape.cooperative ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

LaunchShape shapeOf(const CUlaunchConfig& config) {
  return {config.gridDimX, config.gridDimY, config.gridDimZ, config.blockDimX, config.blockDimY, config.blockDimZ,
          config.sharedMemBytes};
}

// A library's kernel is launched in the context of its stream; in the default stream, in the current context.
CUresult functionOfKernel(Thread& thread, CUfunction& function, CUstream inStream) {
  uint64_t handle = toWire(function), stream = toWire(inStream);
  if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
  auto* entry = thread.session.handles.find<api::Kind::STREAM>(stream);
  const uint64_t context = entry == nullptr ? thread.owner() : thread.session.contexts.ownerOf(entry->context.load());
  if (CUresult bad = resolveFunction(thread, context, handle)) return bad;
  function = fromWire<CUfunction>(handle);
  return CUDA_SUCCESS;
}

// A launch that has passed the checks.
struct Ready {
  uint64_t function, stream;
  uint32_t parameterBytes;
};

// The fields that all frames of launches have.
template <typename Frame>
void putShape(Frame& frame, uint64_t function, const LaunchShape& shape) {
  frame->setFunction(function);
  frame->setGridX(shape.gridX);
  frame->setGridY(shape.gridY);
  frame->setGridZ(shape.gridZ);
  frame->setBlockX(shape.blockX);
  frame->setBlockY(shape.blockY);
  frame->setBlockZ(shape.blockZ);
  frame->setSharedBytes(shape.sharedBytes);
}

// Checks a launch; `send` posts it unless it is captured. `attributes`: null if there are none. Inlined with null as a constant, so that a
// launch without attributes does not look for any.
template <typename Send>
[[gnu::always_inline]] inline CUresult withChecked(Thread& thread, CUfunction f, const LaunchShape& shape,
                                                   const LaunchAttributes* attributes, CUstream hStream, void** kernelParams,
                                                   void** extra, Send&& send) {
  Session& session = thread.session;
  uint64_t stream = toWire(hStream);
  auto* entry = session.handles.find<api::Kind::FUNCTION>(toWire(f));
  if (entry == nullptr) [[unlikely]] {
    if (CUresult bad = functionOfKernel(thread, f, hStream)) return bad;
    entry = session.handles.find<api::Kind::FUNCTION>(toWire(f));
  }
  const FunctionLayout& function = *entry->layout;
  if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
  if (entry->device() != thread.deviceOf(stream)) return CUDA_ERROR_INVALID_HANDLE;  // the function is loaded on one device only
  const DeviceInfo& device = session.devices[entry->device()];
  std::optional<ClusterSize> cluster;
  if (attributes != nullptr) cluster = clusterIn(attributes->values());
  if (CUresult refused = check(device, f, function, shape, attributes == nullptr ? nullptr : &cluster)) {
    // The driver detects such clusters while it makes the node, which invalidates the capture.
    if (refused == CUDA_ERROR_INVALID_CLUSTER_SIZE) (void)thread.refuseCaptured(stream);
    return refused;
  }
  if (shape.cooperative)
    if (CUresult refused = checkCooperative(thread, stream, f, shape)) return refused;
  KernelParameters parameters;
  if (CUresult refused = parameters.check(function, kernelParams, extra)) return refused;
  if (session.captures.isActive()) [[unlikely]] {
    auto describe = [&, attributes](NodeWork& work) {
      std::span<const CUlaunchAttribute> values;
      if (attributes != nullptr) values = attributes->values();
      if (attributes != nullptr && attributes->recordsOutside()) return CUDA_ERROR_NOT_SUPPORTED;
      auto& kernel = work.emplace<KernelWork>();
      CUresult described = describeKernel(thread, f, shape, values, kernelParams, extra, kernel);
      takePriority(session, stream, kernel);
      const bool isAsked = described == CUDA_SUCCESS && attributes != nullptr && attributes->deviceNode() != nullptr;
      return isAsked ? DeviceNode::make(thread, kernel, *attributes->deviceNode()) : described;
    };
    const bool overlaps = attributes != nullptr && attributes->mayOverlap();
    if (auto captured = session.captures.add(thread, stream, describe, overlaps)) return *captured;
  }

  std::vector<kj::byte> gathered;
  if (session.managed.exists()) [[unlikely]] parameters.takeOut(session.managed, function, gathered);
  if (session.output.isExpected()) [[unlikely]] session.output.deliverWaiting(thread);
  return send(Ready{toWire(f), stream, function.parameterBytes}, [&](kj::byte* into) { parameters.gather(function, into); });
}

CUresult post(Thread& thread, CUfunction f, const LaunchShape& shape, CUstream hStream, void** kernelParams, void** extra) {
  return withChecked(thread, f, shape, nullptr, hStream, kernelParams, extra, [&](const Ready& ready, auto gather) {
    Call<api::Cuda::LaunchKernelParams> frame(thread.of(ready.stream), api::Method::launchKernel, dataWords(ready.parameterBytes));
    putShape(frame, ready.function, shape);
    frame.setStream(ready.stream);
    frame->setCooperative(shape.cooperative);
    gather(frame->initParameters(ready.parameterBytes).begin());
    return finishLaunch(thread, ready.stream, frame.post());
  });
}

CUresult postWith(Thread& thread, CUfunction f, const LaunchShape& shape, const LaunchAttributes& attributes, CUstream hStream,
                  void** kernelParams, void** extra) {
  auto send = [&](const Ready& ready, auto gather) -> CUresult {
    if (attributes.deviceNode() != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // device nodes exist only for launches in a capture
    auto bytes = bytesOf(attributes.values());
    Call<api::Cuda::LaunchWithAttributesParams> frame(thread.of(ready.stream), api::Method::launchWithAttributes,
                                                      dataWords(ready.parameterBytes) + dataWords(bytes.size()));
    putShape(frame, ready.function, shape);
    frame.setStream(ready.stream);
    frame->setCooperative(shape.cooperative);
    gather(frame->initParameters(ready.parameterBytes).begin());
    std::memcpy(frame->initAttributes(static_cast<uint32_t>(bytes.size())).begin(), bytes.data(), bytes.size());
    return finishLaunch(thread, ready.stream, frame.post());
  };
  CUresult result = withChecked(thread, f, shape, &attributes, hStream, kernelParams, extra, send);
  for (auto& record : attributes.records())
    if (result == CUDA_SUCCESS) result = recordEvent(record.event, hStream, record.flags, record.edge);
  return result;
}

}  // namespace

CUresult vgpu::client::describeKernel(Thread& thread, CUfunction f, const LaunchShape& shape,
                                      std::span<const CUlaunchAttribute> attributes, void** kernelParams, void** extra,
                                      KernelWork& work) {
  auto* entry = thread.session.handles.find<api::Kind::FUNCTION>(toWire(f));
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const FunctionLayout& function = *entry->layout;
  const auto cluster = clusterIn(attributes);
  if (CUresult refused = check(thread.session.devices[entry->device()], f, function, shape, &cluster)) return refused;
  KernelParameters parameters;
  if (CUresult refused = parameters.check(function, kernelParams, extra)) return refused;
  work = {.function = toWire(f), .shape = shape};
  work.parameters.resize(function.parameterBytes);
  parameters.gather(function, static_cast<kj::byte*>(static_cast<void*>(work.parameters.data())));
  work.blockBytes = parameters.givenBlock();
  for (auto& attribute : attributes)
    if (findAttributeKind(attribute.id)->ofNodes) work.attributes.push_back(attribute);
  return CUDA_SUCCESS;
}

CUresult vgpu::client::checkClusters(Thread& thread, const KernelWork& work) {
  auto* entry = thread.session.handles.find<api::Kind::FUNCTION>(work.function);
  if (entry == nullptr) return CUDA_SUCCESS;  // its module is gone
  const DeviceInfo& device = thread.session.devices[entry->device()];
  return ::checkClusters(device, fromWire<CUfunction>(work.function), *entry->layout, work.shape, clusterIn(work.attributes));
}

CUresult vgpu::client::launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** kernelParams, void** extra) {
  return enter([&](Thread& thread) { return post(thread, function, shape, stream, kernelParams, extra); });
}

CUresult vgpu::client::checkLaunch(Thread& thread, CUfunction function, const LaunchShape& shape, CUstream stream, void** kernelParams) {
  return withChecked(thread, function, shape, nullptr, stream, kernelParams, nullptr, [](const Ready&, auto&&) { return CUDA_SUCCESS; });
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  return enter([&](Thread& thread) -> CUresult {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LaunchShape shape = shapeOf(*config);
    LaunchAttributes attributes;
    if (CUresult bad = attributes.read(*config, shape.cooperative)) return bad;
    if (attributes.isEmpty()) return post(thread, f, shape, config->hStream, kernelParams, extra);
    if (CUresult bad = attributes.checkRecords(thread.session.handles)) return bad;
    return postWith(thread, f, shape, attributes, config->hStream, kernelParams, extra);
  });
}

}  // extern "C"

CUresult vgpu::client::clustersOf(int* value, CUfunction function, const CUlaunchConfig* config, bool isPotentialSize) {
  return enter([&](Thread& thread) -> CUresult {
    if (value == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t handle = toWire(function);
    if (CUresult bad = thread.resolve(api::Kind::FUNCTION, false, handle)) return bad;
    LaunchShape shape = shapeOf(*config);
    LaunchAttributes attributes;
    if (CUresult bad = attributes.read(*config, shape.cooperative)) return bad;
    auto bytes = bytesOf(attributes.values());
    Call<api::Cuda::OccupancyClustersParams> frame(thread.of(handle), api::Method::occupancyClusters, dataWords(bytes.size()));
    putShape(frame, handle, shape);
    frame->setPotential(isPotentialSize);
    std::memcpy(frame->initAttributes(static_cast<uint32_t>(bytes.size())).begin(), bytes.data(), bytes.size());
    if (CUresult error = frame.call()) return error;
    *value = frame.results<api::Cuda::OccupancyClustersResults>().getValue();
    return CUDA_SUCCESS;
  });
}
