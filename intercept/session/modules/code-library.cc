#include "intercept/session/modules/code-library.h"

#include "intercept/session/modules/modules.h"

namespace vgpu::client {

CodeLibrary::CodeLibrary(uint64_t handle, std::span<const std::byte> image, bool isPreserved, JitOptions jit)
    : handle(handle),
      copy(isPreserved ? std::vector<std::byte>{} : std::vector(image.begin(), image.end())),
      image(isPreserved ? image : std::span<const std::byte>(copy)),
      jit(std::move(jit)) {}

CUresult CodeLibrary::moduleIn(Thread& thread, uint64_t context, uint64_t& module) {
  HandleTable& handles = thread.session.handles;
  if (context == 0) return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard lock(loading);
  uint64_t& known = modules[context];
  if (!handles.isLive(api::Kind::MODULE, known)) {
    if (thread.runsHostFunctions) return CUDA_ERROR_NOT_PERMITTED;  // loading may wait for the stream, which waits for this function
    if (CUresult error = loadModule(thread, image, context, jit, known, handle)) return error;
  }
  module = known;
  return CUDA_SUCCESS;
}

CUresult CodeLibrary::listKernels(Thread& thread, uint64_t context, std::vector<std::string>& all) {
  uint64_t module = 0;
  if (CUresult error = moduleIn(thread, context, module)) return error;
  std::lock_guard lock(loading);
  if (!names) {
    std::vector<std::string> found;
    if (CUresult error = listFunctions(thread, module, found)) return error;
    names = std::move(found);
  }
  all = *names;
  return CUDA_SUCCESS;
}

std::vector<uint64_t> CodeLibrary::contextsOn(Thread& thread, unsigned device) {
  std::lock_guard lock(loading);
  std::vector<uint64_t> contexts;
  for (auto [context, module] : modules)
    if (handleDevice(context) == device && thread.session.handles.find<api::Kind::MODULE>(module) != nullptr)
      contexts.push_back(context);
  return contexts;
}

CUresult CodeLibrary::unload(Thread& thread) {
  std::lock_guard lock(loading);
  CUresult first = CUDA_SUCCESS;
  for (auto [context, module] : modules) {
    if (!thread.session.handles.isLive(api::Kind::MODULE, module)) continue;
    CUresult result = unloadModule(thread, module);
    if (first == CUDA_SUCCESS) first = result;
  }
  modules.clear();
  return first;
}

CUresult LibraryKernel::functionIn(Thread& thread, uint64_t context, uint64_t& function) {
  if (context == 0) return CUDA_ERROR_INVALID_CONTEXT;
  uint64_t last = recent[handleDevice(context)].load(std::memory_order_acquire);
  auto* entry = thread.session.handles.find<api::Kind::FUNCTION>(last);
  if (entry == nullptr || entry->layout->context != context) return load(thread, context, function);
  function = last;
  return CUDA_SUCCESS;
}

CUresult LibraryKernel::load(Thread& thread, uint64_t context, uint64_t& function) {
  auto* owner = thread.session.handles.find<api::Kind::LIBRARY>(library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t module = 0;
  if (CUresult error = owner->code->moduleIn(thread, context, module)) return error;
  if (CUresult error = findFunction(thread, module, name, function)) return error;
  recent[handleDevice(context)].store(function, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult LibraryKernel::applyTo(Thread& thread, uint64_t function) {
  std::lock_guard lock(setting);
  for (auto& [key, set] : settings)
    if (key.first == handleDevice(function))
      if (CUresult error = set(thread, function)) return error;
  return CUDA_SUCCESS;
}

CUresult LibraryKernel::setOn(Thread& thread, unsigned device, uint64_t key, Setting set) {
  auto* owner = thread.session.handles.find<api::Kind::LIBRARY>(library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard lock(setting);
  std::vector<uint64_t> contexts = owner->code->contextsOn(thread, device);
  if (contexts.empty()) contexts.push_back(contextOn(thread, device));
  for (uint64_t context : contexts) {
    uint64_t function = 0;
    if (CUresult error = functionIn(thread, context, function)) return error;
    if (CUresult error = set(thread, function)) return error;
  }
  settings[{device, key}] = std::move(set);
  return CUDA_SUCCESS;
}

uint64_t contextOn(Thread& thread, unsigned device) {
  uint64_t current = thread.owner();
  return current != 0 && handleDevice(current) == device ? current : thread.session.primaryContext(device);
}

CUresult resolveFunction(Thread& thread, uint64_t context, uint64_t& handle) {
  if (auto* kernel = thread.session.handles.find<api::Kind::KERNEL>(handle))
    return kernel->kernel->functionIn(thread, context, handle);
  return thread.session.handles.find<api::Kind::FUNCTION>(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace vgpu::client
