#include "intercept/runtime/registry.h"

#include <algorithm>
#include <utility>

#include "intercept/runtime/pointer-table.h"
#include "intercept/runtime/registration.h"

namespace vgpu::runtime {
namespace {

constinit std::mutex registryLock;
constinit Module* modules = nullptr;
constinit Function* libraryKernels = nullptr;  // kernels that the program got through the library API
constinit PointerTable<Function> functions;
constinit PointerTable<Variable> variables;
constinit PointerTable<Function> handles;

/// The first registration of an address is kept: the host stub of a template kernel is one function in the whole program, and every object
/// that instantiates the template registers it.
template <class T>
void add(PointerTable<T>& table, const void* key, T* record) {
  if (table.find(key) == nullptr) table.set(key, record);
}

template <class T>
void remove(PointerTable<T>& table, const void* key, const T* record) {
  if (table.find(key) == record) table.set(key, nullptr);
}

/// Under `registryLock`.
void removeHandles(const Function& function) {
  for (auto& loaded : function.owned) remove(handles, loaded->function, &function);
}

}  // namespace

Function* findFunction(const void* key) { return functions.find(key); }
Variable* findVariable(const void* key) { return variables.find(key); }
Function* findByHandle(CUfunction handle) { return handles.find(handle); }

Module* addModule(const FatbinaryWrapper* wrapper) {
  auto module = std::make_unique<Module>();
  module->wrapper = wrapper;
  std::lock_guard lock(registryLock);
  module->next = modules;
  return modules = module.release();  // the program owns it now; removeModule() deletes it
}

void addFunction(Module& module, const void* host, const char* name) {
  auto record = std::make_unique<Function>();
  record->module = &module;
  record->host = host;
  record->name = name;
  std::lock_guard lock(registryLock);
  add(functions, host, record.get());
  add(functions, record.get(), record.get());  // a cudaKernel_t is the record's address
  module.functions.push_back(std::move(record));
}

void addVariable(Module& module, const void* host, void** managedHost, const char* name, size_t size) {
  auto record = std::make_unique<Variable>();
  record->module = &module;
  record->host = host;
  record->managedHost = managedHost;
  record->name = name;
  record->size = size;
  std::lock_guard lock(registryLock);
  add(variables, host, record.get());
  std::lock_guard moduleLock(module.lock);
  module.variables.push_back(std::move(record));
}

void addVariableAddress(Variable& variable, const void* address) {
  std::lock_guard lock(registryLock);
  add(variables, address, &variable);
}

void addHandle(CUfunction handle, Function& function) {
  std::lock_guard lock(registryLock);
  handles.set(handle, &function);
}

void addKernel(CUkernel kernel, Function& function) {
  std::lock_guard lock(registryLock);
  add(functions, kernel, &function);
}

void removeModule(Module* module) {
  std::unique_ptr<Module> owned(module);
  std::lock_guard lock(registryLock);
  for (Module** at = &modules; *at != nullptr; at = &(*at)->next)
    if (*at == module) {
      *at = module->next;
      break;
    }
  for (auto& function : module->functions) {
    remove(functions, function->host, function.get());
    remove(functions, function.get(), function.get());
    if (function->kernel != nullptr) remove(functions, function->kernel, function.get());
    removeHandles(*function);
  }
  for (auto& variable : module->variables) {
    remove(variables, variable->host, variable.get());
    if (variable->managedHost != nullptr) remove(variables, *variable->managedHost, variable.get());
  }
}

void registerKernel(CUkernel kernel, CUlibrary library) {
  std::lock_guard lock(registryLock);
  if (functions.find(kernel) != nullptr) return;
  auto record = std::make_unique<Function>();
  record->kernel = kernel;
  record->library = library;
  auto* kept = record.release();  // kept until removeKernels(): the driver may return the same kernel again
  kept->next = std::exchange(libraryKernels, kept);
  functions.set(kernel, kept);
}

void removeKernels(CUlibrary library) {
  std::lock_guard lock(registryLock);
  for (Function** at = &libraryKernels; *at != nullptr;) {
    if ((*at)->library != library) {
      at = &(*at)->next;
      continue;
    }
    std::unique_ptr<Function> ended(*at);
    *at = ended->next;
    remove(functions, ended->kernel, ended.get());
    removeHandles(*ended);
  }
}

void forgetSlot(int slot) {
  std::lock_guard lock(registryLock);
  for (Function* kernel = libraryKernels; kernel != nullptr; kernel = kernel->next)
    if (kernel->loaded.get(slot) != nullptr) kernel->loaded.set(slot, nullptr);
  for (Module* module = modules; module != nullptr; module = module->next) {
    std::lock_guard moduleLock(module->lock);
    if (module->loaded.get(slot) != nullptr) module->loaded.set(slot, nullptr);
    if (module->failed.get(slot) != 0) module->failed.set(slot, 0);
    for (auto& function : module->functions)
      if (function->loaded.get(slot) != nullptr) function->loaded.set(slot, nullptr);
    for (auto& variable : module->variables)
      if (variable->address.get(slot) != 0) variable->address.set(slot, 0);
  }
}

}  // namespace vgpu::runtime
