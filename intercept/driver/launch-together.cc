// Cooperative launches on several devices (cuLaunchCooperativeKernelMultiDevice): one launch on each device. Every launch runs after the
// work already in all of the streams, and before later work in any of them.
//
// Kernels cannot wait for each other's grids in such a launch: CUDA 13 has no multi_grid_group, and devices report no support for it
// (CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH).
#include <span>

#include "intercept/driver/shared.h"
#include "intercept/session/in-context.h"

namespace vgpu::client {

namespace {

using Launches = std::span<const CUDA_LAUNCH_PARAMS>;

LaunchShape cooperativeShape(const CUDA_LAUNCH_PARAMS& launch) {
  return {launch.gridDimX,  launch.gridDimY,  launch.gridDimZ,       launch.blockDimX,
          launch.blockDimY, launch.blockDimZ, launch.sharedMemBytes, true};
}

uint64_t contextOf(Thread& thread, const CUDA_LAUNCH_PARAMS& launch) {
  auto* stream = thread.session.handles.find<api::Kind::STREAM>(toWire(launch.hStream));
  return stream == nullptr ? 0 : thread.session.contexts.ownerOf(stream->context);
}

// The stream must be one that the program made, in the function's context; a library's kernel has no context.
CUresult checkStream(Thread& thread, const CUDA_LAUNCH_PARAMS& launch) {
  const uint64_t context = contextOf(thread, launch);
  if (context == 0 || launch.function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto* function = thread.session.handles.find<api::Kind::FUNCTION>(toWire(launch.function));
  if (function != nullptr && function->layout->context != context) return CUDA_ERROR_INVALID_HANDLE;
  return thread.refuseCaptured(toWire(launch.hStream));
}

CUresult checkAll(Thread& thread, Launches launches) {
  for (auto& launch : launches) {
    if (CUresult bad = checkStream(thread, launch)) return bad;
    if (!(cooperativeShape(launch) == cooperativeShape(launches.front()))) return CUDA_ERROR_INVALID_VALUE;
    for (auto* before = launches.data(); before != &launch; ++before)
      if (handleDevice(toWire(before->hStream)) == handleDevice(toWire(launch.hStream))) return CUDA_ERROR_INVALID_DEVICE;
  }
  for (auto& launch : launches)
    if (CUresult bad = checkLaunch(thread, launch.function, cooperativeShape(launch), launch.hStream, launch.kernelParams)) return bad;
  return CUDA_SUCCESS;
}

// Makes later work in each stream wait for all work that is now in any of the streams.
CUresult join(Thread& thread, Launches launches) {
  CUresult result = CUDA_SUCCESS;
  std::vector<CUevent> reached;
  for (auto& launch : launches) {
    InContext ofStream(thread, contextOf(thread, launch));
    if (result == CUDA_SUCCESS) result = cuEventCreate(&reached.emplace_back(), CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) result = cuEventRecord(reached.back(), launch.hStream);
  }
  for (size_t i = 0; i < launches.size(); ++i)
    for (size_t k = 0; k < reached.size(); ++k)
      if (result == CUDA_SUCCESS && i != k) result = cuStreamWaitEvent(launches[i].hStream, reached[k], 0);
  for (CUevent event : reached)
    if (event != nullptr) cuEventDestroy(event);
  return result;
}

}  // namespace

CUresult launchTogether(const CUDA_LAUNCH_PARAMS* all, unsigned count, unsigned flags) {
  return enterAny([&](Thread& thread) -> CUresult {
    constexpr unsigned notBehind = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC;
    constexpr unsigned notBefore = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
    const Launches launches(all, all == nullptr ? 0 : count);
    if (launches.empty() || count > thread.session.devices.size() || (flags & ~(notBehind | notBefore)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = checkAll(thread, launches)) return bad;
    if (count > 1 && (flags & notBehind) == 0)
      if (CUresult error = join(thread, launches)) return error;
    for (auto& launch : launches) {
      InContext ofStream(thread, contextOf(thread, launch));
      CUresult error = client::launch(launch.function, cooperativeShape(launch), launch.hStream, launch.kernelParams, nullptr);
      if (error != CUDA_SUCCESS) return error;
    }
    return count > 1 && (flags & notBefore) == 0 ? join(thread, launches) : CUDA_SUCCESS;
  });
}

}  // namespace vgpu::client
