// Launching kernels.
//
// A launch looks its kernel up by address, checks the configuration against limits that are read once per kernel and context, and calls the
// driver: no lock and no allocation after a kernel's first launch.
#include "intercept/runtime/launch.h"

#include <algorithm>

#include "intercept/runtime/convert.h"
#include "intercept/runtime/registry.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

/// The error for more threads than the kernel allows: too few registers, or its launch bounds.
cudaError_t tooManyThreads(uint64_t threads, const LoadedFunction& kernel) {
  CUdevice device;
  int registers = 0, present = 0;
  CUresult result = cuCtxGetDevice(&device);
  if (result == CUDA_SUCCESS) result = cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel.function);
  if (result == CUDA_SUCCESS)
    result = cuDeviceGetAttribute(&present, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device);
  if (result != CUDA_SUCCESS) return answer(result);
  bool deviceTakesThem = threads <= launchLimits(thread.slot).threads;
  return deviceTakesThem && registers * threads > uint64_t(present) ? cudaErrorLaunchOutOfResources
                                                                    : cudaErrorInvalidValue;
}

/// An impossible configuration is cudaErrorInvalidValue in CUDA 13.0 (driver 580), not cudaErrorInvalidConfiguration as its manual says.
inline cudaError_t check(const dim3& grid, const dim3& block, const LoadedFunction& kernel) {
  const LaunchLimits& limits = launchLimits(thread.slot);
  uint64_t threads = uint64_t{block.x} * block.y * block.z;
  bool fits = block.x <= limits.block[0] && block.y <= limits.block[1] && block.z <= limits.block[2] &&
              grid.x <= limits.grid[0] && grid.y <= limits.grid[1] && grid.z <= limits.grid[2];
  bool empty = threads == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0;
  if (!fits || empty) return cudaErrorInvalidValue;
  return threads <= kernel.maxThreads ? cudaSuccess : tooManyThreads(threads, kernel);
}

/// The copy of the maximum is outdated if the program has raised it through the driver API. If it has lowered it, the driver refuses the
/// launch.
[[gnu::cold]] cudaError_t checkSharedAgain(size_t shared, LoadedFunction& kernel) {
  int most = 0;
  CUresult result = cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.function);
  if (result != CUDA_SUCCESS) return answer(result);
  kernel.maxDynamicShared.store(static_cast<unsigned>(most), std::memory_order_relaxed);
  return shared <= static_cast<unsigned>(most) ? cudaSuccess : cudaErrorInvalidValue;
}

inline cudaError_t checkShared(size_t shared, LoadedFunction& kernel) {
  return shared <= kernel.maxDynamicShared.load(std::memory_order_relaxed) ? cudaSuccess : checkSharedAgain(shared, kernel);
}

inline cudaError_t find(const void* key, LoadedFunction*& kernel) {
  kernel = findLoaded(key);
  return kernel != nullptr ? cudaSuccess : getLoaded(key, kernel);
}

/// Repeats a launch that the current context refused with CUDA_ERROR_INVALID_HANDLE, now in the context of `stream`. A kernel launched in a
/// stream of another device runs on that device (driver 580), as the function loaded there. Launches need not check for this beforehand:
/// the driver refuses a function of one context in a stream of another.
template <class Launch>
[[gnu::cold]] cudaError_t launchInContextOf(CUstream stream, Launch launch) {
  CUcontext current = nullptr, own = nullptr;
  cuCtxGetCurrent(&current);
  if (cuStreamGetCtx(stream, &own) != CUDA_SUCCESS || own == current) return cudaErrorInvalidResourceHandle;
  if (CUresult result = cuCtxPushCurrent(own); result != CUDA_SUCCESS) return answer(result);
  cudaError_t error = readyInContext();
  if (error == cudaSuccess) error = launch();
  cuCtxPopCurrent(&own);
  cudaError_t back = readyInContext();
  return error != cudaSuccess ? error : back;
}

inline cudaError_t launch(const void* key, const dim3& grid, const dim3& block, void** arguments, size_t shared,
                          CUstream stream) {
  LoadedFunction* kernel;
  if (cudaError_t error = find(key, kernel); error != cudaSuccess) return error;
  if (cudaError_t error = check(grid, block, *kernel); error != cudaSuccess) return error;
  if (cudaError_t error = checkShared(shared, *kernel); error != cudaSuccess) return error;
  CUresult result = cuLaunchKernel(kernel->function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                   static_cast<unsigned>(shared), stream, arguments, nullptr);
  if (result == CUDA_ERROR_INVALID_HANDLE) [[unlikely]]
    return launchInContextOf(stream, [&] { return launch(key, grid, block, arguments, shared, stream); });
  return answer(result);
}

cudaError_t launchCooperative(const void* key, const dim3& grid, const dim3& block, void** arguments, size_t shared,
                              CUstream stream) {
  LoadedFunction* kernel;
  if (cudaError_t error = find(key, kernel); error != cudaSuccess) return error;
  if (cudaError_t error = check(grid, block, *kernel); error != cudaSuccess) return error;
  if (checkShared(shared, *kernel) != cudaSuccess) return cudaErrorCooperativeLaunchTooLarge;
  CUresult result = cuLaunchCooperativeKernel(kernel->function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                              static_cast<unsigned>(shared), stream, arguments);
  if (result == CUDA_ERROR_INVALID_HANDLE) [[unlikely]]
    return launchInContextOf(stream, [&] { return launchCooperative(key, grid, block, arguments, shared, stream); });
  return answer(result);
}

static_assert(static_cast<int>(cudaLaunchAttributeClusterDimension) == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(static_cast<int>(cudaLaunchAttributePriority) == CU_LAUNCH_ATTRIBUTE_PRIORITY);

cudaError_t launchExtended(const cudaLaunchConfig_t* config, const void* key, void** arguments, CUstream stream) {
  if (config == nullptr) return cudaErrorInvalidValue;
  LoadedFunction* kernel;
  if (cudaError_t error = find(key, kernel); error != cudaSuccess) return error;
  const dim3 &grid = config->gridDim, &block = config->blockDim;
  if (cudaError_t error = check(grid, block, *kernel); error != cudaSuccess) return error;
  if (cudaError_t error = checkShared(config->dynamicSmemBytes, *kernel); error != cudaSuccess) return error;
  CUlaunchConfig driverConfig = toDriver(*config, stream);
  CUresult result = cuLaunchKernelEx(&driverConfig, kernel->function, arguments, nullptr);
  if (result == CUDA_ERROR_INVALID_HANDLE) [[unlikely]]
    return launchInContextOf(stream, [&] { return launchExtended(config, key, arguments, stream); });
  return answer(result);
}

/// Configurations that <<<...>>> has pushed and the kernel's host stub has not yet popped: a launch's arguments may contain launches.
struct Pushed {
  static constexpr int depth = 8;
  struct {
    unsigned grid[3], block[3];
    size_t shared;
    cudaStream_t stream;
  } stack[depth];
  int count;
};
thread_local constinit Pushed pushed = {};

}  // namespace

cudaError_t findKernel(cudaKernel_t* kernel, const void* host) {
  if (kernel == nullptr) return cudaErrorInvalidValue;
  Function* function = findFunction(host);
  if (function == nullptr) return cudaErrorInvalidDeviceFunction;
  void* record = function;
  *kernel = function->kernel != nullptr ? function->kernel : static_cast<cudaKernel_t>(record);
  return cudaSuccess;
}

}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME_STREAM(cudaLaunchKernel,
               (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
               launch(function, grid, block, arguments, shared, on(stream)))
RUNTIME_STREAM(cudaLaunchCooperativeKernel,
               (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
               launchCooperative(function, grid, block, arguments, shared, on(stream)))
RUNTIME_STREAM(cudaLaunchKernelExC, (const cudaLaunchConfig_t* config, const void* function, void** arguments),
               launchExtended(config, function, arguments, on(config == nullptr ? nullptr : config->stream)))

// Called by nvcc's code after __cudaGetKernel (crt/device_functions.h); it has no public prototype.
extern "C" __attribute__((visibility("default"))) cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid,
                                                                                 dim3 block, void** arguments,
                                                                                 size_t shared, cudaStream_t stream);
RUNTIME_STREAM(__cudaLaunchKernel,
               (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
               launch(kernel, grid, block, arguments, shared, on(stream)))

extern "C" {

__attribute__((visibility("default"))) unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                                            CUstream_st* stream) {
  // The stack is full of launches whose arguments threw an exception, so that nothing popped them: drops the oldest.
  if (pushed.count == Pushed::depth) {
    std::copy(pushed.stack + 1, pushed.stack + pushed.count, pushed.stack);
    --pushed.count;
  }
  pushed.stack[pushed.count++] = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, stream};
  return cudaSuccess;
}

/// `stream` points to a cudaStream_t.
__attribute__((visibility("default"))) cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                                                              void* stream) {
  if (pushed.count == 0) return remember(cudaErrorMissingConfiguration);
  const auto& top = pushed.stack[--pushed.count];
  *grid = dim3(top.grid[0], top.grid[1], top.grid[2]);
  *block = dim3(top.block[0], top.block[1], top.block[2]);
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

}  // extern "C"
