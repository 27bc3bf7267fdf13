// What the program has registered: its fatbinaries ("modules"), their kernels and their variables.
//
// nvcc's code registers everything from constructors, before main and often before any of our own initialisers; registration is bookkeeping
// only. A module is loaded into a context when one of its kernels or variables is first used there; all of its variables are looked up
// then, kernels each at its first use. __cudaUnregisterFatBinary deletes the records, at exit or when dlclose closes the object.
//
// Lookups by host address take no lock. Lock order: `registryLock` (the list of modules and the tables), a module's lock (its loads).
// Neither is held while the program's code runs.
#pragma once
#include <cuda.h>
#include <driver_types.h>

#include <memory>
#include <mutex>
#include <vector>

#include "intercept/runtime/answer.h"
#include "intercept/runtime/per-context.h"
#include "vgpu/image/fatbinary.h"

namespace vgpu::runtime {

/// A kernel in one context, with the limits that a launch is checked against.
struct LoadedFunction {
  CUfunction function;
  unsigned maxThreads;                     ///< threads of a block; limited by the registers that the kernel uses
  std::atomic<unsigned> maxDynamicShared;  ///< bytes; cudaFuncSetAttribute changes it
};

struct Module;

struct Function {
  Module* module = nullptr;   ///< null for a kernel of the library API
  CUlibrary library = nullptr;  ///< library API only: the library that the kernel belongs to
  CUkernel kernel = nullptr;  ///< of the library API, or set by getKernel(), then under the module's lock
  const void* host = nullptr;
  const char* name = nullptr;  ///< in the module; the program's own string
  PerContext<LoadedFunction*> loaded;
  std::vector<std::unique_ptr<LoadedFunction>> owned;
  Function* next = nullptr;  ///< in the list of kernels of the library API
};

struct Variable {
  Module* module = nullptr;
  const void* host = nullptr;    ///< the address by which the program knows it
  void** managedHost = nullptr;  ///< managed variable: the program's pointer to it
  const char* name = nullptr;
  size_t size = 0;
  PerContext<CUdeviceptr> address;
};

using image::FatbinaryWrapper;

struct Module {
  void* self = this;  ///< its address is the handle that the program holds
  const FatbinaryWrapper* wrapper = nullptr;
  std::mutex lock;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<std::unique_ptr<Variable>> variables;
  CUlibrary library = nullptr;  ///< `loaded` are its modules; under the lock
  PerContext<CUmodule> loaded;
  PerContext<int> failed;  ///< a permanent cudaError_t: the image cannot run on the device
  Module* next = nullptr;
};

/// The record of a host function, of a cudaKernel_t or of a kernel of the library API; or null.
Function* findFunction(const void* key);
/// The variable with that host address, or null.
Variable* findVariable(const void* key);

/// The kernel in the thread's context, loading its module if necessary. Needs readyInContext().
cudaError_t getLoaded(const void* key, LoadedFunction*& loaded);
/// The driver's kernel, which belongs to no context; loads its module into the thread's context if necessary. Needs readyInContext().
cudaError_t getKernel(const void* key, cudaKernel_t* kernel);
/// Calls `use` with the driver's handle of that kernel, and returns the driver's result. Needs readyInContext().
template <class Use>
cudaError_t withFunction(const void* key, Use use) {
  LoadedFunction* loaded;
  cudaError_t error = getLoaded(key, loaded);
  return error != cudaSuccess ? error : answer(use(loaded->function));
}
/// As getLoaded(), but only for a kernel that was used in this context before; else null.
inline LoadedFunction* findLoaded(const void* key) {
  Function* function = findFunction(key);
  return function == nullptr ? nullptr : function->loaded.get(thread.slot);
}
/// A variable's address and size in the thread's context, loading its module if necessary. Needs readyInContext().
cudaError_t getAddress(const void* key, CUdeviceptr& address, size_t& size);
/// The address of the variable's bytes [offset, offset + count); otherwise as getAddress().
cudaError_t getPart(const void* key, size_t offset, size_t count, void*& part);

/// Loads the module into the thread's context, once. Needs readyInContext().
cudaError_t load(Module& module);
/// Unloads the module from every context that it is loaded in; errors are ignored.
void unload(Module& module);
/// Drops the records of everything loaded in a context that is about to be destroyed.
void forgetSlot(int slot);

/// The kernel with that driver handle, or null: for queries of graphs.
Function* findByHandle(CUfunction handle);

/// Makes a kernel of a library known to the launch functions. Idempotent.
void registerKernel(CUkernel kernel, CUlibrary library);
/// Drops the records of the kernels of a library that has been unloaded.
void removeKernels(CUlibrary library);

}  // namespace vgpu::runtime
