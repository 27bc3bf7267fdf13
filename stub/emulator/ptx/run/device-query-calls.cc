// Device runtime functions that return errors, and properties of the device and its kernels.
#include <utility>

#include "stub/emulator/ptx/run/device-call.h"
#include "stub/emulator/ptx/run/error-texts.h"

namespace vgpu::emulator {
namespace {

DeviceAnswer getLastError(DeviceCall& call) { return std::exchange(call.lastError(), cudaSuccess); }
DeviceAnswer peekAtLastError(DeviceCall& call) { return call.lastError(); }
DeviceAnswer errorText(DeviceCall& call) { return addressOfErrorText(static_cast<uint32_t>(call.argument(0))); }
DeviceAnswer errorName(DeviceCall& call) { return addressOfErrorName(static_cast<uint32_t>(call.argument(0))); }

// Stores the value at the address in the first argument.
template <class T>
DeviceAnswer give(DeviceCall& call, const T& value) {
  if (!call.store(call.argument(0), value)) return std::nullopt;
  return cudaSuccess;
}

DeviceAnswer getDevice(DeviceCall& call) { return give(call, call.runtime().device()); }
DeviceAnswer getDeviceCount(DeviceCall& call) { return give(call, call.runtime().deviceCount()); }

// cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device)
DeviceAnswer getAttribute(DeviceCall& call) {
  if (call.number(2) < 0 || call.number(2) >= call.runtime().deviceCount()) return cudaErrorInvalidDevice;
  const std::optional<int> value = call.runtime().attribute(call.number(1), call.number(2));
  return value ? give(call, *value) : cudaErrorInvalidValue;
}

// cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit). cudaLimitDevRuntimeSyncDepth does not exist, because kernels cannot wait
// for their children.
DeviceAnswer getLimit(DeviceCall& call) {
  if (call.number(1) == cudaLimitDevRuntimeSyncDepth) return cudaErrorUnsupportedLimit;
  const std::optional<uint64_t> value = call.runtime().limit(call.number(1));
  return value ? give(call, *value) : cudaErrorInvalidValue;
}

DeviceAnswer getCacheConfig(DeviceCall& call) { return give(call, cudaFuncCachePreferNone); }
DeviceAnswer getSharedMemConfig(DeviceCall& call) { return give(call, cudaSharedMemBankSizeFourByte); }

// The value of an H200 (driver 580.159), whatever the program's runtime version.
DeviceAnswer getRuntimeVersion(DeviceCall& call) { return give(call, 6000); }

// The kernel with the address in the argument; nothing after a fault.
std::optional<const Kernel*> kernelOf(DeviceCall& call, size_t argument) {
  const DeviceRuntime::Found found = call.runtime().findKernel(call.argument(argument));
  if (!found.problem.empty()) return call.fault(Fault::Kind::notSupported, "a query of " + found.problem);
  return found.kernel;
}

// cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel)
DeviceAnswer getFunctionAttributes(DeviceCall& call) {
  const auto kernel = kernelOf(call, 1);
  if (!kernel) return std::nullopt;
  if (!*kernel) return cudaErrorInvalidDeviceFunction;
  const KernelAttributes& known = (*kernel)->attributes;
  cudaFuncAttributes attributes{};
  attributes.sharedSizeBytes = known.staticSharedBytes;
  attributes.constSizeBytes = known.constantBytes;
  attributes.localSizeBytes = known.localBytes;
  attributes.maxThreadsPerBlock = static_cast<int>(known.maxThreadsPerBlock);
  attributes.numRegs = static_cast<int>(known.registers);
  attributes.ptxVersion = static_cast<int>(known.ptxVersion);
  const auto figure = [&](cudaDeviceAttr which) { return call.runtime().attribute(which, call.runtime().device()).value_or(0); };
  attributes.binaryVersion = figure(cudaDevAttrComputeCapabilityMajor) * 10 + figure(cudaDevAttrComputeCapabilityMinor);
  attributes.maxDynamicSharedSizeBytes = static_cast<int>(call.runtime().dynamicSharedLimit(**kernel));
  attributes.preferredShmemCarveout = cudaSharedmemCarveoutDefault;
  attributes.clusterDimMustBeSet = known.explicitCluster;
  attributes.requiredClusterWidth = static_cast<int>(known.cluster[0]);
  attributes.requiredClusterHeight = static_cast<int>(known.cluster[1]);
  attributes.requiredClusterDepth = static_cast<int>(known.cluster[2]);
  return give(call, attributes);
}

// cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int blockThreads, size_t
// sharedBytes)
DeviceAnswer getResidentBlocks(DeviceCall& call) {
  const auto kernel = kernelOf(call, 1);
  if (!kernel) return std::nullopt;
  if (!*kernel) return cudaErrorInvalidDeviceFunction;
  if (call.number(2) <= 0) return cudaErrorInvalidValue;
  return give(call, call.runtime().residentBlocks(**kernel, static_cast<uint32_t>(call.number(2)), call.argument(3)));
}

// The same with flags as last argument.
DeviceAnswer getResidentBlocksWithFlags(DeviceCall& call) {
  if ((call.argument(4) & ~uint64_t{cudaOccupancyDisableCachingOverride}) != 0) return cudaErrorInvalidValue;
  return getResidentBlocks(call);
}

constexpr BuiltinRow queryRows[] = {
    {"__cudaCDP2GetLastError", 0, 1, answer<getLastError>},
    {"__cudaCDP2PeekAtLastError", 0, 1, answer<peekAtLastError>},
    {"__cudaCDP2GetErrorString", 1, 1, answer<errorText>},
    {"__cudaCDP2GetErrorName", 1, 1, answer<errorName>},
    {"__cudaCDP2GetDevice", 1, 1, answerError<getDevice>},
    {"__cudaCDP2GetDeviceCount", 1, 1, answerError<getDeviceCount>},
    {"__cudaCDP2DeviceGetAttribute", 3, 1, answerError<getAttribute>},
    {"__cudaCDP2DeviceGetLimit", 2, 1, answer<getLimit>},  // an H200 (driver 580.159) does not keep its error as last error
    {"__cudaCDP2DeviceGetCacheConfig", 1, 1, answerError<getCacheConfig>},
    {"__cudaCDP2DeviceGetSharedMemConfig", 1, 1, answerError<getSharedMemConfig>},
    {"__cudaCDP2RuntimeGetVersion", 1, 1, answerError<getRuntimeVersion>},
    {"__cudaCDP2FuncGetAttributes", 2, 1, answerError<getFunctionAttributes>},
    {"__cudaCDP2OccupancyMaxActiveBlocksPerMultiprocessor", 4, 1, answerError<getResidentBlocks>},
    {"__cudaCDP2OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 5, 1, answerError<getResidentBlocksWithFlags>},
};

}  // namespace

std::span<const BuiltinRow> deviceQueryBuiltins() { return queryRows; }

}  // namespace vgpu::emulator
