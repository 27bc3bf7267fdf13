// The functions that nvcc's code calls to register a program's kernels and variables (crt/host_runtime.h). They have no
// public prototypes; those below are what nvcc 13 emits calls of.
#include "intercept/runtime/launch.h"
#include "intercept/runtime/registration.h"
#include "intercept/runtime/rows.h"

using namespace vgpu::runtime;

namespace {

Module& moduleOf(void** handle) { return *static_cast<Module*>(*handle); }

cudaError_t loadManaged(Module& module) {
  for (auto& variable : module.variables)
    if (variable->managedHost != nullptr) return load(module);
  return cudaSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  return &addModule(static_cast<const FatbinaryWrapper*>(wrapper))->self;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  if (handle == nullptr) return;
  if (stage.load() == Stage::working && !exiting.load()) unload(moduleOf(handle));
  removeModule(&moduleOf(handle));
}

/// The kernel's host stub and its name in the module; the other parameters date from CUDA 1.
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  addFunction(moduleOf(handle), host, name);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int, int) {
  addVariable(moduleOf(handle), host, nullptr, name, size);
}

/// Host code reaches a managed variable through a pointer, which is set when the module is loaded.
void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t size, int, int) {
  addVariable(moduleOf(handle), host, host, name, size);
}

/// Called when the program's host code first touches a managed variable. nvcc's code calls it again as long as it returns zero.
char __cudaInitModule(void** handle) {
  return enter(readyInContext, [&] { return loadManaged(moduleOf(handle)); }) == cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) { return remember(findKernel(kernel, host)); }

}  // extern "C"
#pragma GCC visibility pop
