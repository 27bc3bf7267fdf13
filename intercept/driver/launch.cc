// Launches: checked against what the device and the function allow, as CUDA does at once; then one posted frame.
#include <vector>

#include "intercept/driver/shared.h"
#include "intercept/session/kernel-parameters.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

bool isOnDevice(const DeviceInfo& device, const LaunchShape& shape) {
  auto within = [&](unsigned value, CUdevice_attribute limit) {
    return value != 0 && value <= static_cast<unsigned>(device.attribute(limit));
  };
  return within(shape.gridX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) && within(shape.gridY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) &&
         within(shape.gridZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) && within(shape.blockX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) &&
         within(shape.blockY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) &&
         within(shape.blockZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
}

// More threads than the function allows: because of registers, its launch bounds or the device's limit.
CUresult tooManyThreads(const DeviceInfo& device, CUfunction function, uint64_t threads) {
  auto limit = [&](CUdevice_attribute which) { return static_cast<uint64_t>(device.attribute(which)); };
  if (threads > limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) return CUDA_ERROR_INVALID_VALUE;
  int registers = 0;
  if (CUresult error = cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function)) return error;
  bool fit = static_cast<uint64_t>(registers) * threads <= limit(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  return fit ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

// All blocks of a cooperative launch are on the device at once.
CUresult checkCooperative(const DeviceInfo& device, CUfunction function, const LaunchShape& shape, uint64_t threads) {
  if (device.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  int resident = 0;
  if (CUresult error = cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, function, static_cast<int>(threads),
                                                                   shape.sharedBytes))
    return error;
  auto fit = static_cast<uint64_t>(resident) *
             static_cast<uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  // The first two dimensions first: the product of all three can be more than 64 bits hold.
  uint64_t layer = uint64_t{shape.gridX} * shape.gridY;
  return layer > fit || layer * shape.gridZ > fit ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

// The errors that CUDA returns at the launch because of the device's and the function's properties (docs/refusals.md).
CUresult check(const DeviceInfo& device, CUfunction handle, const FunctionLayout& function, const LaunchShape& shape) {
  uint64_t threads = uint64_t{shape.blockX} * shape.blockY * shape.blockZ;
  if (!isOnDevice(device, shape)) return CUDA_ERROR_INVALID_VALUE;
  if (threads > function.maxThreadsPerBlock) return tooManyThreads(device, handle, threads);
  if (shape.sharedBytes > function.maxDynamicSharedBytes.load(std::memory_order_relaxed))
    return shape.cooperative ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_ERROR_INVALID_VALUE;
  return shape.cooperative ? checkCooperative(device, handle, shape, threads) : CUDA_SUCCESS;
}

// Attributes of a launch that we know. False if one is asked for that we do not have.
bool readAttributes(const CUlaunchConfig& config, LaunchShape& shape) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    auto& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY: break;  // a hint
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: shape.cooperative = attribute.value.cooperative != 0; break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (attribute.value.clusterDim.x * attribute.value.clusterDim.y * attribute.value.clusterDim.z != 1) return false;
        break;
      default: return false;
    }
  }
  return true;
}

// A library's kernel is launched in the context of its stream, or in the current one.
CUresult functionOfKernel(Thread& thread, CUfunction& function, CUstream inStream) {
  uint64_t handle = toWire(function), stream = toWire(inStream);
  if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
  auto* entry = thread.session.handles.find<api::Kind::STREAM>(stream);
  if (CUresult bad = resolveFunction(thread, entry == nullptr ? thread.context() : entry->context.load(), handle)) return bad;
  function = fromWire<CUfunction>(handle);
  return CUDA_SUCCESS;
}

CUresult post(Thread& thread, CUfunction f, const LaunchShape& shape, CUstream hStream, void** kernelParams, void** extra) {
  Session& session = thread.session;
  uint64_t stream = toWire(hStream);
  auto* entry = session.handles.find<api::Kind::FUNCTION>(toWire(f));
  if (entry == nullptr) [[unlikely]] {
    if (CUresult bad = functionOfKernel(thread, f, hStream)) return bad;
    entry = session.handles.find<api::Kind::FUNCTION>(toWire(f));
  }
  const FunctionLayout& function = *entry->layout;
  if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
  if (entry->device() != thread.deviceOf(stream)) return CUDA_ERROR_INVALID_HANDLE;  // it is loaded on one device
  if (CUresult refused = check(session.devices[entry->device()], f, function, shape)) return refused;
  KernelParameters parameters;
  if (CUresult refused = parameters.check(function, kernelParams, extra)) return refused;
  if (session.captures.isActive()) [[unlikely]] {
    auto describe = [&](NodeWork& work) {
      return describeKernel(thread, f, shape, kernelParams, extra, work.emplace<KernelWork>());
    };
    if (auto captured = session.captures.add(thread, stream, describe)) return *captured;
  }

  std::vector<kj::byte> gathered;
  if (session.managed.exists()) [[unlikely]] parameters.takeOut(session.managed, function, gathered);
  if (session.output.isExpected()) [[unlikely]] session.output.deliverWaiting(thread);
  Call<api::Cuda::LaunchKernelParams> frame(thread.of(stream), api::Method::launchKernel, dataWords(function.parameterBytes));
  frame->setFunction(toWire(f));
  frame.setStream(stream);
  frame->setGridX(shape.gridX);
  frame->setGridY(shape.gridY);
  frame->setGridZ(shape.gridZ);
  frame->setBlockX(shape.blockX);
  frame->setBlockY(shape.blockY);
  frame->setBlockZ(shape.blockZ);
  frame->setSharedBytes(shape.sharedBytes);
  frame->setCooperative(shape.cooperative);
  parameters.gather(function, frame->initParameters(function.parameterBytes).begin());
  return finishLaunch(thread, stream, frame.post());
}

}  // namespace

CUresult vgpu::client::describeKernel(Thread& thread, CUfunction f, const LaunchShape& shape, void** kernelParams, void** extra,
                                      KernelWork& work) {
  auto* entry = thread.session.handles.find<api::Kind::FUNCTION>(toWire(f));
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const FunctionLayout& function = *entry->layout;
  if (CUresult refused = check(thread.session.devices[entry->device()], f, function, shape)) return refused;
  KernelParameters parameters;
  if (CUresult refused = parameters.check(function, kernelParams, extra)) return refused;
  work = {.function = toWire(f), .shape = shape};
  work.parameters.resize(function.parameterBytes);
  parameters.gather(function, static_cast<kj::byte*>(static_cast<void*>(work.parameters.data())));
  work.blockBytes = parameters.givenBlock();
  return CUDA_SUCCESS;
}

CUresult vgpu::client::launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** kernelParams, void** extra) {
  return enter([&](Thread& thread) { return post(thread, function, shape, stream, kernelParams, extra); });
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  return enter([&](Thread& thread) -> CUresult {
    if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    LaunchShape shape{config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                config->blockDimY, config->blockDimZ, config->sharedMemBytes};
    if (!readAttributes(*config, shape)) return CUDA_ERROR_NOT_SUPPORTED;
    return post(thread, f, shape, config->hStream, kernelParams, extra);
  });
}

}  // extern "C"
