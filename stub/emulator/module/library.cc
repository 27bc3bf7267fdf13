// cuLibrary* and cuKernel*: code that belongs to no context and is loaded into each context that uses it.
#include <fstream>
#include <iterator>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/module/container.h"

namespace vgpu::emulator::api {

std::shared_ptr<LoadedModule> Library::moduleIn(Context& context) {
  std::lock_guard lock(mutex);
  std::shared_ptr<LoadedModule>& module = modules[context.id];
  if (!module) {
    JitLog log;
    module = loadModule(context, image(), log, &managed);
  }
  return module;
}

std::vector<std::shared_ptr<LibraryKernel>> Library::allKernels(Context& context) {
  std::shared_ptr<LoadedModule> module = moduleIn(context);
  std::vector<std::shared_ptr<LibraryKernel>> all;
  for (const std::string& name : module->kernelNames()) all.push_back(kernel(context, name));
  return all;
}

std::shared_ptr<LibraryKernel> Library::kernel(Context& context, const std::string& name) {
  moduleIn(context)->function(name);  // refuses if there is no such kernel
  std::lock_guard lock(mutex);
  std::shared_ptr<LibraryKernel>& known = kernels[name];
  if (!known) {
    known = std::make_shared<LibraryKernel>(shared_from_this(), name);
    context.driver.kernels.add(known);
  }
  return known;
}

std::shared_ptr<Function> LibraryKernel::functionIn(Context& context) const {
  std::shared_ptr<Library> owner = library.lock();
  if (!owner) refuse(CUDA_ERROR_INVALID_HANDLE);
  return owner->moduleIn(context)->function(name);
}

namespace {

CUresult loadLibrary(CUlibrary* handle, const void* image, unsigned jitCount, CUjit_option* jitOptions,
                     void** jitValues, CUlibraryOption* options, void** values, unsigned count) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && image != nullptr);
    JitLog log(jitCount, jitOptions, jitValues);
    std::span<const std::byte> bytes = imageAt(image);
    bool preserved = false;
    require(count == 0 || options != nullptr);
    for (unsigned i = 0; i < count; ++i) {
      require(options[i] >= 0 && options[i] < CU_LIBRARY_NUM_OPTIONS);
      if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) preserved = values != nullptr && values[i] != nullptr;
    }
    auto library = std::make_shared<Library>(bytes, preserved);
    // Loaded at once into the current context, so that a bad image is refused by this call.
    library->modules[context.id] = loadModule(context, library->image(), log, &library->managed);
    *handle = context.driver.libraries.add(library);
  });
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator;
using namespace vgpu::emulator::api;

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* handle, const void* image, CUjit_option* jitOptions, void** jitValues,
                                   unsigned jitCount, CUlibraryOption* options, void** values, unsigned count) {
  return loadLibrary(handle, image, jitCount, jitOptions, jitValues, options, values, count);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* handle, const char* path, CUjit_option* jitOptions, void** jitValues,
                                       unsigned jitCount, CUlibraryOption* options, void** values, unsigned count) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  bytes.push_back('\0');
  return loadLibrary(handle, bytes.data(), jitCount, jitOptions, jitValues, options, values, count);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Library> library = driver.libraries.remove(handle);
    std::lock_guard lock(library->mutex);
    for (const auto& [context, module] : library->modules) {
      module->context.streams.waitForAll();
      driver.functions.removeIf([&](const Function& function) { return function.module == module; });
      driver.modules.removeIf([&](const LoadedModule& each) { return &each == module.get(); });
      module->release();
    }
    if (library->managed) library->managed->release();
    for (const auto& [name, kernel] : library->kernels) driver.kernels.remove(kernel->handle);
  });
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  return enterContext([&](Context& context) {
    require(kernel != nullptr && name != nullptr && *name != '\0');
    *kernel = context.driver.libraries.get(handle)->kernel(context, name)->handle;
  });
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
  return enterContext([&](Context& context) {
    require(count != nullptr);
    *count = static_cast<unsigned>(context.driver.libraries.get(handle)->moduleIn(context)->kernelNames().size());
  });
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned most, CUlibrary handle) {
  return enterContext([&](Context& context) {
    require(kernels != nullptr);
    unsigned i = 0;
    for (const auto& kernel : context.driver.libraries.get(handle)->allKernels(context)) {
      if (i == most) break;
      kernels[i++] = kernel->handle;
    }
  });
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
  return enterContext([&](Context& context) {
    require(module != nullptr);
    *module = context.driver.libraries.get(handle)->moduleIn(context)->handle;
  });
}

namespace {

CUresult libraryVariable(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name, bool managed) {
  return enterContext([&](Context& context) {
    require(name != nullptr && *name != '\0');
    std::shared_ptr<LoadedModule> module = context.driver.libraries.get(handle)->moduleIn(context);
    const Variable* variable = module->findVariable(name);
    if (!variable || variable->managed != managed) refuse(CUDA_ERROR_NOT_FOUND);
    if (address) *address = module->addressOf(*variable);
    if (bytes) *bytes = variable->bytes;
  });
}

}  // namespace

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name) {
  return libraryVariable(address, bytes, handle, name, false);
}

CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name) {
  return libraryVariable(address, bytes, handle, name, true);
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return enterContext([&](Context& context) {
    require(function != nullptr);
    *function = context.driver.kernels.get(kernel)->functionIn(context)->handle;
  });
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return enterDriver([&](Driver& driver) {
    require(library != nullptr);
    std::shared_ptr<Library> owner = driver.kernels.get(kernel)->library.lock();
    if (!owner) refuse(CUDA_ERROR_INVALID_HANDLE);
    *library = owner->handle;
  });
}

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel kernel) {
  return enterDriver([&](Driver& driver) {
    require(name != nullptr);
    *name = driver.kernels.get(kernel)->name.c_str();
  });
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return enterContext([&](Context& context) {
    parameterInfo(context.driver.kernels.get(kernel)->functionIn(context)->kernel(), index, offset, bytes);
  });
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return enterContext([&](Context& context) {
    require(value != nullptr);
    *value = context.driver.kernels.get(kernel)->functionIn(context)->attribute(attribute);
  });
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  return enterContext([&](Context& context) {
    context.driver.device(device);
    context.driver.kernels.get(kernel)->functionIn(context)->setAttribute(attribute, value);
  });
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  return enterContext([&](Context& context) { context.driver.kernels.get(kernel); });
}
