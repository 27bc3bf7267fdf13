// cuModule*: code loaded into one context.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph.h"

using namespace vgpu::emulator;
using namespace vgpu::emulator::api;

namespace {

std::string readFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(CUDA_ERROR_FILE_NOT_FOUND);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* handle, const void* image, unsigned count, CUjit_option* options,
                                    void** values) {
  return enterContext([&](Context& context) {
    require(handle != nullptr);
    JitLog log(count, options, values);
    context.flushOutput();
    *handle = loadModule(context, image, log)->handle;
    log.done();
  });
}

CUresult CUDAAPI cuModuleLoadData(CUmodule* handle, const void* image) {
  return cuModuleLoadDataEx(handle, image, 0, nullptr, nullptr);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* handle, const void* image) {
  return cuModuleLoadDataEx(handle, image, 0, nullptr, nullptr);
}

CUresult CUDAAPI cuModuleLoad(CUmodule* handle, const char* path) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && path != nullptr);
    std::string bytes = readFile(path);
    JitLog log;
    context.flushOutput();
    *handle = loadModule(context, std::as_bytes(std::span(bytes)), log)->handle;
  });
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<LoadedModule> module = context.driver.modules.get(handle);
    requireModuleUnnamed(context.driver, *module);
    module->context.streams.waitForAll();
    module->context.flushOutput();
    context.driver.functions.removeIf([&](const Function& function) { return function.module == module; });
    context.driver.modules.remove(handle)->release();
  });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* handle, CUmodule moduleHandle, const char* name) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && name != nullptr && *name != '\0');
    *handle = context.driver.modules.get(moduleHandle)->function(name)->handle;
  });
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  return enterContext([&](Context& context) {
    require(count != nullptr);
    *count = static_cast<unsigned>(context.driver.modules.get(handle)->kernelNames().size());
  });
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned most, CUmodule handle) {
  return enterContext([&](Context& context) {
    require(functions != nullptr);
    std::shared_ptr<LoadedModule> module = context.driver.modules.get(handle);
    unsigned i = 0;
    for (const std::string& name : module->kernelNames()) {
      if (i == most) break;
      functions[i++] = module->function(name)->handle;
    }
  });
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* name) {
  return enterContext([&](Context& context) {
    require(name != nullptr && *name != '\0');
    std::shared_ptr<LoadedModule> module = context.driver.modules.get(handle);
    const Variable* variable = module->findVariable(name);
    if (!variable) {
      const bool isOther = std::ranges::count(module->kernelNames(), name) != 0 || module->findReference(name, Type::texref) ||
                           module->findReference(name, Type::surfref);
      refuse(isOther ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND);
    }
    if (address) *address = module->addressOf(*variable);
    if (bytes) *bytes = variable->bytes;
  });
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return enterAlways([&] {
    require(mode != nullptr);
    *mode = CU_MODULE_LAZY_LOADING;  // kernels are decoded at their first use
  });
}
