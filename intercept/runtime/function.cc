// Kernels' attributes and settings.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/registry.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

CUresult readAttributes(cudaFuncAttributes& attributes, CUfunction function) {
  auto read = [&](CUfunction_attribute attribute, auto& to) {
    int value = 0;
    CUresult result = cuFuncGetAttribute(&value, attribute, function);
    // The driver is older than the attribute: the value stays 0.
    if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED) result = CUDA_SUCCESS;
    to = static_cast<std::remove_reference_t<decltype(to)>>(value);
    return result;
  };
  attributes = {};
#define ROW(attribute, member) \
  if (CUresult result = read(CU_FUNC_ATTRIBUTE_##attribute, attributes.member); result != CUDA_SUCCESS) return result
  ROW(SHARED_SIZE_BYTES, sharedSizeBytes);
  ROW(CONST_SIZE_BYTES, constSizeBytes);
  ROW(LOCAL_SIZE_BYTES, localSizeBytes);
  ROW(MAX_THREADS_PER_BLOCK, maxThreadsPerBlock);
  ROW(NUM_REGS, numRegs);
  ROW(PTX_VERSION, ptxVersion);
  ROW(BINARY_VERSION, binaryVersion);
  ROW(CACHE_MODE_CA, cacheModeCA);
  ROW(MAX_DYNAMIC_SHARED_SIZE_BYTES, maxDynamicSharedSizeBytes);
  ROW(PREFERRED_SHARED_MEMORY_CARVEOUT, preferredShmemCarveout);
  ROW(CLUSTER_SIZE_MUST_BE_SET, clusterDimMustBeSet);
  ROW(REQUIRED_CLUSTER_WIDTH, requiredClusterWidth);
  ROW(REQUIRED_CLUSTER_HEIGHT, requiredClusterHeight);
  ROW(REQUIRED_CLUSTER_DEPTH, requiredClusterDepth);
  ROW(NON_PORTABLE_CLUSTER_SIZE_ALLOWED, nonPortableClusterSizeAllowed);
  ROW(CLUSTER_SCHEDULING_POLICY_PREFERENCE, clusterSchedulingPolicyPreference);
#undef ROW
  return CUDA_SUCCESS;
}

/// The launch path checks dynamic shared memory against this copy of the maximum.
void noteAttribute(LoadedFunction& loaded, int attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
    loaded.maxDynamicShared.store(value, std::memory_order_relaxed);
}

cudaError_t setAttribute(const void* key, cudaFuncAttribute attribute, int value) {
  LoadedFunction* loaded;
  if (cudaError_t error = getLoaded(key, loaded); error != cudaSuccess) return error;
  CUresult result = cuFuncSetAttribute(loaded->function, static_cast<CUfunction_attribute>(attribute), value);
  if (result == CUDA_SUCCESS) noteAttribute(*loaded, attribute, value);
  return answer(result);
}

/// Sets the attribute on any device, not only the thread's. A host function is no cudaKernel_t here, as in the driver.
cudaError_t setAttributeOn(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
  const Function* function = findFunction(kernel);
  const void* key = kernel;
  if (function == nullptr || function->host == key) return cudaErrorInvalidResourceHandle;
  if (function->module != nullptr)
    if (cudaError_t error = getKernel(function->host, &kernel); error != cudaSuccess) return error;
  return answer(cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, device));
}

cudaError_t readName(const char** name, const void* key) {
  if (name == nullptr) return cudaErrorInvalidValue;
  return withFunction(key, [&](CUfunction function) { return cuFuncGetName(name, function); });
}

cudaError_t readFunctionAttributes(cudaFuncAttributes* attributes, const void* key) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  return withFunction(key, [&](CUfunction function) { return readAttributes(*attributes, function); });
}

cudaError_t readFunction(cudaFunction_t* handle, const void* key) {
  if (handle == nullptr) return cudaErrorInvalidValue;
  if (findFunction(key) == nullptr) return cudaErrorInvalidDeviceFunction;
  return withFunction(key, [&](CUfunction function) { return *handle = function, CUDA_SUCCESS; });
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

static_assert(static_cast<int>(cudaFuncAttributeMaxDynamicSharedMemorySize) ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(static_cast<int>(cudaFuncAttributeClusterSchedulingPolicyPreference) ==
              CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);

RUNTIME(cudaFuncGetAttributes, (cudaFuncAttributes * attributes, const void* function),
        readFunctionAttributes(attributes, function))
RUNTIME(cudaFuncSetAttribute, (const void* function, cudaFuncAttribute attribute, int value),
        setAttribute(function, attribute, value))
RUNTIME(cudaKernelSetAttributeForDevice, (cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device),
        setAttributeOn(kernel, attribute, value, device))
RUNTIME(cudaFuncSetCacheConfig, (const void* function, cudaFuncCache config), withFunction(function, [&](CUfunction f) {
          return cuFuncSetCacheConfig(f, static_cast<CUfunc_cache>(config));
        }))
RUNTIME(cudaFuncSetSharedMemConfig, (const void* function, cudaSharedMemConfig config),
        withFunction(function,
                     [&](CUfunction f) { return cuFuncSetSharedMemConfig(f, static_cast<CUsharedconfig>(config)); }))
RUNTIME(cudaFuncGetName, (const char** name, const void* function), readName(name, function))
RUNTIME(cudaFuncGetParamInfo, (const void* function, size_t index, size_t* offset, size_t* size),
        withFunction(function, [&](CUfunction f) { return cuFuncGetParamInfo(f, index, offset, size); }))
RUNTIME(cudaGetFuncBySymbol, (cudaFunction_t * handle, const void* function), readFunction(handle, function))
