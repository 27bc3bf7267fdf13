// Device runtime functions for launches, and for the streams and events that order them.
#include "stub/emulator/ptx/run/device-call.h"
#include "stub/emulator/ptx/run/hex.h"

namespace vgpu::emulator {
namespace {

// Handles with special meanings in CUDA; the headers define them only for device code.
constexpr uint64_t nullStream = 0, legacyStream = 1, perThreadStream = 2, tailLaunchStream = 3, fireAndForgetStream = 4;

// Prepares the child for a launch of the kernel at `address`. For every invalid shape the error is cudaErrorInvalidConfiguration and
// becomes the thread's last error, as on an H200 (driver 580.159).
std::optional<cudaError_t> prepare(DeviceCall& call, uint64_t address, const GridShape& shape, ChildGrid& child) {
  const DeviceRuntime::Found found = call.runtime().findKernel(address);
  if (!found.problem.empty()) return call.fault(Fault::Kind::notSupported, "a launch of " + found.problem);
  if (!found.kernel) return cudaErrorInvalidDeviceFunction;
  const bool hasBuffer = found.kernel->parameterBytes <= mostParameterBytes;
  if (!hasBuffer || !call.runtime().canLaunch(*found.kernel, shape)) return cudaErrorInvalidConfiguration;
  child = {found.kernel, shape, std::vector<std::byte>(found.kernel->parameterBytes)};
  return cudaSuccess;
}

uint64_t bufferFor(DeviceCall& call, ChildGrid child) {
  const uint64_t buffer = call.launches().newBuffer(std::move(child));
  if (buffer == 0) call.lastError() = cudaErrorLaunchPendingCountExceeded;
  return buffer;
}

// void* cudaGetParameterBufferV2(void* kernel, dim3 grid, dim3 block, unsigned sharedBytes)
DeviceAnswer bufferOfLaunch(DeviceCall& call) {
  const GridShape shape{call.dimensions(1), call.dimensions(2), static_cast<uint32_t>(call.argument(3))};
  ChildGrid child;
  const std::optional<cudaError_t> error = prepare(call, call.argument(0), shape, child);
  if (!error) return std::nullopt;
  if (*error == cudaSuccess) return bufferFor(call, std::move(child));
  call.lastError() = *error;
  return 0;
}

// void* cudaGetParameterBuffer(size_t alignment, size_t bytes)
DeviceAnswer bufferOfSize(DeviceCall& call) {
  constexpr uint64_t mostAlignment = 16;  // of a type in PTX, and of the buffer
  if (call.argument(0) <= mostAlignment && call.argument(1) <= mostParameterBytes)
    return bufferFor(call, {.parameters = std::vector<std::byte>(call.argument(1))});
  call.lastError() = cudaErrorInvalidValue;
  return 0;
}

DeviceAnswer launchBuffer(DeviceCall& call, uint64_t buffer, uint64_t stream, const ChildGrid* as = nullptr) {
  const std::optional<Order> order = orderOf(call, stream);
  if (!order) return cudaErrorInvalidResourceHandle;
  switch (call.launches().launch(buffer, *order, call.pendingLimit(), as)) {
    case DeviceLaunches::Launched::yes:
      return cudaSuccess;
    case DeviceLaunches::Launched::tooMany:
      return cudaErrorLaunchPendingCountExceeded;
    case DeviceLaunches::Launched::noBuffer:
      break;
  }
  return call.fault(Fault::Kind::illegalAddress, "a launch with parameter buffer " + hex(buffer) +
                                                     ", which this grid did not get or has already launched");
}

// cudaError_t cudaLaunchDeviceV2(void* buffer, cudaStream_t stream). Without a buffer, the thread's last error is already set.
DeviceAnswer launchPrepared(DeviceCall& call) {
  if (call.argument(0) != 0) return launchBuffer(call, call.argument(0), call.argument(1));
  const uint32_t error = call.lastError();
  return error != cudaSuccess ? error : static_cast<uint32_t>(cudaErrorInvalidValue);
}

// cudaError_t cudaLaunchDevice(void* kernel, void* buffer, dim3 grid, dim3 block, unsigned sharedBytes, cudaStream_t stream)
DeviceAnswer launchKernel(DeviceCall& call) {
  const GridShape shape{call.dimensions(2), call.dimensions(3), static_cast<uint32_t>(call.argument(4))};
  ChildGrid child;
  const std::optional<cudaError_t> error = prepare(call, call.argument(0), shape, child);
  if (!error) return std::nullopt;
  if (*error != cudaSuccess) return *error;
  uint64_t buffer = call.argument(1);
  if (buffer == 0) {  // for a kernel without parameters
    if (!child.parameters.empty()) return cudaErrorInvalidValue;
    buffer = call.launches().newBuffer({});
    if (buffer == 0) return cudaErrorLaunchPendingCountExceeded;
  }
  return launchBuffer(call, buffer, call.argument(5), &child);
}

// cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags). An H200 (driver 580.159) accepts both flags.
DeviceAnswer createStream(DeviceCall& call) {
  if ((call.argument(1) & ~uint64_t{cudaStreamNonBlocking}) != 0) return cudaErrorInvalidValue;
  if (!call.store(call.argument(0), call.launches().newStream())) return std::nullopt;
  return cudaSuccess;
}

DeviceAnswer destroyStream(DeviceCall& call) {
  return call.launches().isStream(call.argument(0)) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

// cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags). CUDA Programming Guide: there are twice as many events as
// pending launches, and they only order work.
DeviceAnswer createEvent(DeviceCall& call) {
  if (call.argument(1) != cudaEventDisableTiming) return cudaErrorInvalidValue;
  const uint64_t event = call.launches().newEvent(2 * call.pendingLimit());
  if (event == 0) return cudaErrorMemoryAllocation;
  if (!call.store(call.argument(0), event)) return std::nullopt;
  return cudaSuccess;
}

DeviceAnswer destroyEvent(DeviceCall& call) {
  return call.launches().destroyEvent(call.argument(0)) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

// Work is executed in submission order, so events need no implementation.
cudaError_t checkEvent(DeviceCall& call, uint64_t event, uint64_t stream) {
  if (stream == tailLaunchStream || stream == fireAndForgetStream) return cudaErrorInvalidValue;
  return call.launches().isEvent(event) && orderOf(call, stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

// cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
DeviceAnswer recordEvent(DeviceCall& call) { return checkEvent(call, call.argument(0), call.argument(1)); }

// cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
DeviceAnswer recordEventWithFlags(DeviceCall& call) {
  if (call.argument(2) != cudaEventRecordDefault) return cudaErrorInvalidValue;
  return recordEvent(call);
}

// cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
DeviceAnswer waitForEvent(DeviceCall& call) {
  if (call.argument(2) != cudaEventWaitDefault) return cudaErrorInvalidValue;
  return checkEvent(call, call.argument(1), call.argument(0));
}

constexpr BuiltinRow deviceRows[] = {
    {"__cudaCDP2GetParameterBufferV2", 4, 1, answer<bufferOfLaunch>},
    {"__cudaCDP2GetParameterBuffer", 2, 1, answer<bufferOfSize>},
    {"__cudaCDP2LaunchDeviceV2", 2, 1, answerError<launchPrepared>},
    {"__cudaCDP2LaunchDeviceV2_ptsz", 2, 1, answerError<launchPrepared>},
    {"__cudaCDP2LaunchDevice", 6, 1, answerError<launchKernel>},
    {"__cudaCDP2LaunchDevice_ptsz", 6, 1, answerError<launchKernel>},
    {"__cudaCDP2StreamCreateWithFlags", 2, 1, answerError<createStream>},
    {"__cudaCDP2StreamDestroy", 1, 1, answerError<destroyStream>},
    {"__cudaCDP2StreamWaitEvent", 3, 1, answerError<waitForEvent>},
    {"__cudaCDP2StreamWaitEvent_ptsz", 3, 1, answerError<waitForEvent>},
    {"__cudaCDP2EventCreateWithFlags", 2, 1, answerError<createEvent>},
    {"__cudaCDP2EventRecord", 2, 1, answerError<recordEvent>},
    {"__cudaCDP2EventRecord_ptsz", 2, 1, answerError<recordEvent>},
    {"__cudaCDP2EventRecordWithFlags", 3, 1, answerError<recordEventWithFlags>},
    {"__cudaCDP2EventRecordWithFlags_ptsz", 3, 1, answerError<recordEventWithFlags>},
    {"__cudaCDP2EventDestroy", 1, 1, answerError<destroyEvent>},
};

}  // namespace

std::optional<Order> orderOf(DeviceCall& call, uint64_t stream) {
  switch (stream) {
    case nullStream:
    case legacyStream:
    case perThreadStream:
    case fireAndForgetStream:
      return Order::child;
    case tailLaunchStream:
      return Order::tail;
    default:
      return call.launches().isStream(stream) ? std::optional(Order::child) : std::nullopt;
  }
}

std::span<const BuiltinRow> deviceLaunchBuiltins() { return deviceRows; }

}  // namespace vgpu::emulator
