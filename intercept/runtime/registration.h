// Adds to and removes from the registry, for the functions that nvcc's code calls (module.cc).
#pragma once
#include "intercept/runtime/registry.h"

namespace vgpu::runtime {

/// The module lives until removeModule(). `wrapper` and all names are the program's and outlive it.
Module* addModule(const FatbinaryWrapper* wrapper);
void addFunction(Module& module, const void* host, const char* name);
/// `managedHost` is null unless the variable is managed.
void addVariable(Module& module, const void* host, void** managedHost, const char* name, size_t size);
/// Adds a further address by which the program knows the variable. Not under a module's lock.
void addVariableAddress(Variable& variable, const void* address);
/// Adds the driver's handle of a kernel in some context, for findByHandle(). Not under a module's lock.
void addHandle(CUfunction handle, Function& function);
/// Adds the driver's kernel of a registered function, for findFunction(). Not under a module's lock.
void addKernel(CUkernel kernel, Function& function);
void removeModule(Module* module);

}  // namespace vgpu::runtime
