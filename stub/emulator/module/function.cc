// cuFunc*: the attributes of kernels and the limits of their launches.
#include <algorithm>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {

std::shared_ptr<Function> LoadedModule::function(const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) refuse(CUDA_ERROR_NOT_FOUND);
  std::lock_guard lock(functionsMutex);
  if (std::shared_ptr<Function> known = functions[name].lock()) return known;
  auto function = std::make_shared<Function>(shared_from_this(), name);
  context.driver.functions.add(function);
  functions[name] = function;
  return function;
}

const Kernel& Function::kernel() {
  const Kernel* known = decoded.load(std::memory_order_acquire);
  if (!known) {
    known = &module->decode(name);
    decoded.store(known, std::memory_order_release);
  }
  return *known;
}

uint32_t Function::dynamicSharedLimit() {
  int set = maxDynamicShared;
  if (set >= 0) return static_cast<uint32_t>(set);
  uint32_t fixed = attributesOf(kernel()).staticSharedBytes;
  auto most = static_cast<uint32_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  return fixed < most ? most - fixed : 0;
}

std::array<uint32_t, 3> Function::requiredCluster() {
  const auto own = attributesOf(kernel()).cluster;
  return own[0] != 0 ? own : std::array<uint32_t, 3>{setCluster[0], setCluster[1], setCluster[2]};
}

int Function::attribute(CUfunction_attribute which) {
  KernelAttributes known = attributesOf(kernel());
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(known.maxThreadsPerBlock);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(known.staticSharedBytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return static_cast<int>(known.constantBytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(known.localBytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(known.registers);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      return static_cast<int>(known.ptxVersion);
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return context.device.architecture();
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return static_cast<int>(dynamicSharedLimit());
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return carveout;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      return 0;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      return known.explicitCluster || known.cluster[0] != 0;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return static_cast<int>(requiredCluster()[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return allowsNonPortable;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return clusterPolicy;
    default:
      refuse(CUDA_ERROR_INVALID_VALUE);
  }
}

void Function::setAttribute(CUfunction_attribute which, int value) {
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      int most = context.device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
      require(value >= 0 && value <= most - static_cast<int>(attributesOf(kernel()).staticSharedBytes));
      maxDynamicShared = value;
      return;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= -1 && value <= 100);
      carveout = value;
      return;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      allowsNonPortable = value != 0;
      return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      require(value >= 0 && attributesOf(kernel()).cluster[0] == 0);
      setCluster[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = static_cast<uint32_t>(value);
      return;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      require(value >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT && value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
      clusterPolicy = value;
      return;
    default:
      refuse(CUDA_ERROR_INVALID_VALUE);
  }
}

std::shared_ptr<Function> functionFor(Context& context, CUfunction handle) {
  if (std::shared_ptr<Function> function = context.driver.functions.find(handle)) return function;
  std::shared_ptr<LibraryKernel> kernel = context.driver.kernels.get(asHandle<CUkernel>(asNumber(handle)));
  return kernel->functionIn(context);
}

void parameterInfo(const Kernel& kernel, size_t index, size_t* offset, size_t* bytes) {
  std::span<const Parameter> parameters = parametersOf(kernel);
  require(offset != nullptr && index < parameters.size());
  *offset = parameters[index].offset;
  if (bytes) *bytes = parameters[index].bytes;
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return enterContext([&](Context& context) {
    require(value != nullptr);
    *value = functionFor(context, handle)->attribute(attribute);
  });
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return enterContext([&](Context& context) { functionFor(context, handle)->setAttribute(attribute, value); });
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  return enterContext([&](Context& context) {
    require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    functionFor(context, handle);
  });
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  return enterContext([&](Context& context) {
    require(config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    functionFor(context, handle);
  });
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction handle) {
  return enterContext([&](Context& context) {
    require(name != nullptr);
    *name = functionFor(context, handle)->name.c_str();
  });
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return enterContext([&](Context& context) {
    require(module != nullptr);
    *module = functionFor(context, handle)->module->handle;
  });
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* bytes) {
  return enterContext(
      [&](Context& context) { parameterInfo(functionFor(context, handle)->kernel(), index, offset, bytes); });
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  return enterContext([&](Context& context) {
    require(state != nullptr);
    bool loaded = functionFor(context, handle)->decoded != nullptr;
    *state = loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
  });
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
  return enterContext([&](Context& context) { functionFor(context, handle)->kernel(); });
}
