// Loading modules into contexts, and finding kernels and variables in what is loaded.
#include <algorithm>
#include <bit>
#include <utility>

#include "intercept/runtime/answer.h"
#include "intercept/runtime/convert.h"
#include "intercept/runtime/message.h"
#include "intercept/runtime/module-link.h"
#include "intercept/runtime/registration.h"

namespace vgpu::runtime {
namespace {

bool willNotChange(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
      return true;
    default:
      return false;
  }
}

/// Loads a module as a library of the driver's: so its kernels have handles that the driver API accepts, and its managed variables have one
/// instance for all contexts. `isPreserved`: the image stays at its address as long as the module exists.
CUresult loadData(Module& module, const void* image, bool isPreserved, CUmodule& loaded) {
  if (module.library == nullptr) {
    CUlibrary library;
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void* value = std::bit_cast<void*>(uintptr_t{isPreserved});
    CUresult result = cuLibraryLoadData(&library, image, nullptr, nullptr, 0, &option, &value, 1);
    if (result != CUDA_SUCCESS) return result;
    module.library = library;
  }
  return cuLibraryGetModule(&loaded, module.library);
}

CUresult loadImage(Module& module, CUmodule& loaded) {
  const FatbinaryWrapper* wrapper = module.wrapper;
  if (wrapper == nullptr || wrapper->magic != image::wrapperMagic || wrapper->image == nullptr)
    return CUDA_ERROR_INVALID_IMAGE;
  CUresult result = loadData(module, wrapper->image, true, loaded);
  bool linkable = wrapper->version == 2 && wrapper->parts != nullptr && willNotChange(result);
  return linkable ? linkParts(*wrapper, [&](const void* linked) { return loadData(module, linked, false, loaded); }) : result;
}

/// Whether another context has an instance elsewhere: in a session each has its own, but the program has only one pointer to it.
bool isElsewhere(const Variable& variable, CUdeviceptr address) {
  for (int slot = 0; slot < maxSlots; ++slot)
    if (slot != thread.slot && variable.address.get(slot) != 0 && variable.address.get(slot) != address) return true;
  return false;
}


/// Finds the variable in a module of the thread's context. Under the module's lock.
CUresult locate(Variable& variable, CUmodule loaded) {
  CUdeviceptr address;
  size_t size;
  CUresult result = cuModuleGetGlobal(&address, &size, loaded, variable.name);
  // The compiler may have dropped a variable that no kernel uses; a later lookup of the variable reports it.
  if (result == CUDA_ERROR_NOT_FOUND) return CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return result;
  if (variable.managedHost != nullptr) {
    if (isElsewhere(variable, address)) {
      say({"managed variable ", variable.name,
           " is already in use in another context of this device; on a virtual GPU the contexts of a device cannot share it"});
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    *variable.managedHost = std::bit_cast<void*>(address);
  }
  variable.address.set(thread.slot, address);
  return CUDA_SUCCESS;
}

cudaError_t loadLocked(Module& module) {
  if (module.loaded.get(thread.slot) != nullptr) return cudaSuccess;
  if (int before = module.failed.get(thread.slot); before != 0) return static_cast<cudaError_t>(before);
  CUmodule loaded;
  CUresult result = loadImage(module, loaded);
  if (willNotChange(result)) module.failed.set(thread.slot, answer(result));
  if (result != CUDA_SUCCESS) return answer(result);
  for (auto& variable : module.variables)
    if (result = locate(*variable, loaded); result != CUDA_SUCCESS) {
      for (auto& found : module.variables) found->address.set(thread.slot, 0);
      cuModuleUnload(loaded);
      return answer(result);
    }
  module.loaded.set(thread.slot, loaded);
  return cudaSuccess;
}

CUresult findHandle(const Function& function, CUfunction& handle) {
  if (function.module == nullptr) return cuKernelGetFunction(&handle, function.kernel);
  return cuModuleGetFunction(&handle, function.module->loaded.get(thread.slot), function.name);
}

/// Finds the kernel in the thread's context. Under the lock of the function's module.
cudaError_t resolve(Function& function, LoadedFunction*& loaded) {
  if (loaded = function.loaded.get(thread.slot); loaded != nullptr) return cudaSuccess;
  CUfunction handle;
  CUresult result = findHandle(function, handle);
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
  if (result != CUDA_SUCCESS) return answer(result);
  int threads = 0, dynamicShared = 0;
  result = cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle);
  if (result == CUDA_SUCCESS)
    result = cuFuncGetAttribute(&dynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, handle);
  if (result != CUDA_SUCCESS) return answer(result);
  function.owned.push_back(std::make_unique<LoadedFunction>(handle, threads, dynamicShared));
  loaded = function.owned.back().get();
  function.loaded.set(thread.slot, loaded);
  return cudaSuccess;
}

constinit std::mutex kernelLock;  // used in place of a module's lock when a kernel of the library API is resolved

cudaError_t resolveUnderLock(Function& function, LoadedFunction*& loaded) {
  std::lock_guard lock(function.module == nullptr ? kernelLock : function.module->lock);
  return resolve(function, loaded);
}

}  // namespace

cudaError_t load(Module& module) {
  if (module.loaded.get(thread.slot) != nullptr) return cudaSuccess;
  {
    std::lock_guard lock(module.lock);
    if (cudaError_t error = loadLocked(module); error != cudaSuccess) return error;
  }
  // The program may also name a managed variable by its device address.
  for (auto& variable : module.variables)
    if (variable->managedHost != nullptr && *variable->managedHost != nullptr)
      addVariableAddress(*variable, *variable->managedHost);
  return cudaSuccess;
}

cudaError_t getLoaded(const void* key, LoadedFunction*& loaded) {
  Function* function = findFunction(key);
  // CUDA takes an unregistered address for a kernel handle, which it then finds invalid.
  if (function == nullptr) return key == nullptr ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidResourceHandle;
  if (loaded = function->loaded.get(thread.slot); loaded != nullptr) return cudaSuccess;
  if (function->module != nullptr)
    if (cudaError_t error = load(*function->module); error != cudaSuccess) return error;
  cudaError_t error = resolveUnderLock(*function, loaded);
  if (error == cudaSuccess) addHandle(loaded->function, *function);
  return error;
}

cudaError_t getKernel(const void* key, cudaKernel_t* kernel) {
  Function* function = findFunction(key);
  if (kernel == nullptr) return cudaErrorInvalidValue;
  if (function == nullptr || function->host != key) return cudaErrorInvalidDeviceFunction;  // nor for a kernel's handle
  if (cudaError_t error = load(*function->module); error != cudaSuccess) return error;
  {
    std::lock_guard lock(function->module->lock);
    CUresult result = CUDA_SUCCESS;
    if (function->kernel == nullptr) result = cuLibraryGetKernel(&function->kernel, function->module->library, function->name);
    if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
    if (result != CUDA_SUCCESS) return answer(result);
    *kernel = function->kernel;
  }
  addKernel(*kernel, *function);
  return cudaSuccess;
}

cudaError_t getAddress(const void* key, CUdeviceptr& address, size_t& size) {
  Variable* variable = findVariable(key);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  if (cudaError_t error = load(*variable->module); error != cudaSuccess) return error;
  if (variable->address.get(thread.slot) == 0) {  // registered after its module was loaded
    std::lock_guard lock(variable->module->lock);
    CUresult result = locate(*variable, variable->module->loaded.get(thread.slot));
    if (result != CUDA_SUCCESS) return answer(result);
  }
  address = variable->address.get(thread.slot);
  size = variable->size;
  return address == 0 ? cudaErrorInvalidSymbol : cudaSuccess;
}

cudaError_t getPart(const void* key, size_t offset, size_t count, void*& part) {
  CUdeviceptr address;
  size_t size;
  if (cudaError_t error = getAddress(key, address, size); error != cudaSuccess) return error;
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  part = toPointer(address + offset);
  return cudaSuccess;
}

void unload(Module& module) {
  std::lock_guard lock(module.lock);
  if (module.library != nullptr) cuLibraryUnload(std::exchange(module.library, nullptr));
}

}  // namespace vgpu::runtime
