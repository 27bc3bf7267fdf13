// Devices: selection, properties, synchronization.
#include <cudaProfiler.h>

#include <bit>

#include "intercept/runtime/array-format.h"
#include "intercept/runtime/convert.h"
#include "intercept/runtime/driver-entries.h"
#include "intercept/runtime/properties.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

cudaError_t countDevices(int* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  *count = 0;
  if (cudaError_t error = ready(); error != cudaSuccess) return error;
  CUresult result = cuDeviceGetCount(count);
  return result == CUDA_SUCCESS && *count == 0 ? cudaErrorNoDevice : answer(result);
}

cudaError_t readAttribute(int* value, cudaDeviceAttr attribute, int device) {
  CUdevice handle;
  if (CUresult result = cuDeviceGet(&handle, device); result != CUDA_SUCCESS) return answer(result);
  return answer(cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), handle));
}

cudaError_t busId(char* text, int length, int device) {
  CUdevice handle;
  if (CUresult result = cuDeviceGet(&handle, device); result != CUDA_SUCCESS) return answer(result);
  return answer(cuDeviceGetPCIBusId(text, length, handle));
}

cudaError_t deviceAt(int* device, const char* text) {
  CUdevice handle;
  if (device == nullptr || text == nullptr) return cudaErrorInvalidValue;
  if (CUresult result = cuDeviceGetByPCIBusId(&handle, text); result != CUDA_SUCCESS) return answer(result);
  *device = handle;
  return cudaSuccess;
}

cudaError_t readDevice(int* device) {
  if (device == nullptr) return cudaErrorInvalidValue;
  return currentDevice(*device);
}

constexpr unsigned settableFlags = cudaDeviceMask & ~cudaDeviceMapHost;

/// At most one scheduling flag (how the host waits) may be set.
cudaError_t setFlags(int ordinal, unsigned flags) {
  CUdevice device;
  if (CUresult result = cuDeviceGet(&device, ordinal); result != CUDA_SUCCESS) return answer(result);
  if ((flags & ~unsigned{cudaDeviceMask}) != 0 || std::popcount(flags & cudaDeviceScheduleMask) > 1) return cudaErrorInvalidValue;
  // Mapped host memory is always enabled and no longer a context flag.
  return answer(cuDevicePrimaryCtxSetFlags(device, flags & settableFlags));
}

cudaError_t setCurrentFlags(unsigned flags) {
  int ordinal;
  cudaError_t error = currentDevice(ordinal);
  return error != cudaSuccess ? error : setFlags(ordinal, flags);
}

cudaError_t readFlags(unsigned* flags) {
  int ordinal, active;
  CUdevice device;
  if (flags == nullptr) return cudaErrorInvalidValue;
  if (cudaError_t error = currentDevice(ordinal); error != cudaSuccess) return error;
  if (CUresult result = cuDeviceGet(&device, ordinal); result != CUDA_SUCCESS) return answer(result);
  CUresult result = cuDevicePrimaryCtxGetState(device, flags, &active);
  *flags = (*flags & ~unsigned{CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE}) | cudaDeviceMapHost;
  return answer(result);
}

/// Flags other than cudaInitDeviceFlagsAreValid are ignored (docs/facts.md).
cudaError_t initialise(int device, unsigned deviceFlags, unsigned flags) {
  if ((flags & cudaInitDeviceFlagsAreValid) != 0)
    if (cudaError_t error = setFlags(device, deviceFlags); error != cudaSuccess) return error;
  return holdDevice(device);
}

/// Needs no context: the range is the same for all.
cudaError_t priorityRange(int* least, int* greatest) { return answer(cuCtxGetStreamPriorityRange(least, greatest)); }

/// The widest one-dimensional texture of linear memory with such elements.
cudaError_t widestTexture(size_t* width, const cudaChannelFormatDesc* element, int device) {
  if (element == nullptr) return cudaErrorInvalidValue;
  auto format = toDriver(*element);
  if (!format) return cudaErrorInvalidChannelDescriptor;
  return answer(cuDeviceGetTexture1DLinearMaxWidth(width, format->format, format->channels, device));
}

cudaError_t driverVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = 0;
  // The driver's version needs no device. An absent driver has version 0.
  return ready() == cudaErrorInsufficientDriver ? cudaSuccess : answer(cuDriverGetVersion(version));
}

cudaError_t runtimeVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = CUDART_VERSION;
  return cudaSuccess;
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

static_assert(static_cast<int>(cudaDevAttrMaxThreadsPerBlock) == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(static_cast<int>(cudaDevAttrHostNumaMultinodeIpcSupported) ==
              CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED);
static_assert(static_cast<int>(cudaLimitPersistingL2CacheSize) == CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
static_assert(static_cast<int>(cudaFuncCachePreferEqual) == CU_FUNC_CACHE_PREFER_EQUAL);

RUNTIME_LOCAL(cudaGetDeviceCount, (int* count), countDevices(count))
RUNTIME_DEVICE(cudaGetDevice, (int* device), readDevice(device))
RUNTIME_DEVICE(cudaSetDevice, (int device), chooseDevice(device))
RUNTIME_DEVICE(cudaSetValidDevices, (int* devices, int count), setValidDevices(devices, count))
RUNTIME_DEVICE(cudaInitDevice, (int device, unsigned deviceFlags, unsigned flags),
               initialise(device, deviceFlags, flags))
RUNTIME_DEVICE(cudaDeviceReset, (), resetDevice())
RUNTIME(cudaDeviceSynchronize, (), cuCtxSynchronize())

RUNTIME_DEVICE(cudaDeviceGetAttribute, (int* value, cudaDeviceAttr attribute, int device),
               readAttribute(value, attribute, device))
RUNTIME_DEVICE(cudaGetDeviceProperties, (cudaDeviceProp * properties, int device), readProperties(properties, device))
RUNTIME_DEVICE(cudaChooseDevice, (int* device, const cudaDeviceProp* wanted), findBestDevice(device, wanted))
RUNTIME_DEVICE(cudaDeviceGetPCIBusId, (char* text, int length, int device), busId(text, length, device))
RUNTIME_DEVICE(cudaDeviceGetByPCIBusId, (int* device, const char* text), deviceAt(device, text))

RUNTIME_DEVICE(cudaSetDeviceFlags, (unsigned flags), setCurrentFlags(flags))
RUNTIME_DEVICE(cudaGetDeviceFlags, (unsigned* flags), readFlags(flags))
RUNTIME(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest), priorityRange(least, greatest))
RUNTIME(cudaDeviceSetLimit, (cudaLimit limit, size_t value), cuCtxSetLimit(static_cast<CUlimit>(limit), value))
RUNTIME(cudaDeviceGetLimit, (size_t * value, cudaLimit limit), cuCtxGetLimit(value, static_cast<CUlimit>(limit)))
RUNTIME(cudaDeviceSetCacheConfig, (cudaFuncCache config), cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config)))
RUNTIME(cudaDeviceGetCacheConfig, (cudaFuncCache * config), cuCtxGetCacheConfig(same<CUfunc_cache>(config)))
RUNTIME(cudaCtxResetPersistingL2Cache, (), cuCtxResetPersistingL2Cache())

RUNTIME(cudaDeviceSetSharedMemConfig, (cudaSharedMemConfig config),
        cuCtxSetSharedMemConfig(static_cast<CUsharedconfig>(config)))
RUNTIME(cudaDeviceGetSharedMemConfig, (cudaSharedMemConfig * config),
        cuCtxGetSharedMemConfig(same<CUsharedconfig>(config)))
RUNTIME_DEVICE(cudaDeviceGetTexture1DLinearMaxWidth, (size_t * width, const cudaChannelFormatDesc* element, int device),
               widestTexture(width, element, device))
RUNTIME_DEVICE(cudaDeviceGetHostAtomicCapabilities,
               (unsigned* capabilities, const cudaAtomicOperation* operations, unsigned count, int device),
               cuDeviceGetHostAtomicCapabilities(capabilities, same<CUatomicOperation>(operations), count, device))
RUNTIME_DEVICE(cudaDeviceGetP2PAtomicCapabilities,
               (unsigned* capabilities, const cudaAtomicOperation* operations, unsigned count, int from, int to),
               cuDeviceGetP2PAtomicCapabilities(capabilities, same<CUatomicOperation>(operations), count, from, to))
RUNTIME(cudaDeviceFlushGPUDirectRDMAWrites,
        (cudaFlushGPUDirectRDMAWritesTarget target, cudaFlushGPUDirectRDMAWritesScope scope),
        cuFlushGPUDirectRDMAWrites(static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                                   static_cast<CUflushGPUDirectRDMAWritesScope>(scope)))

RUNTIME_LOCAL(cudaDriverGetVersion, (int* version), driverVersion(version))
RUNTIME_LOCAL(cudaRuntimeGetVersion, (int* version), runtimeVersion(version))
#pragma GCC visibility push(default)
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);
#pragma GCC visibility pop
RUNTIME(cudaProfilerStart, (), cuProfilerStart())
RUNTIME(cudaProfilerStop, (), cuProfilerStop())
