// Modules of one library of code (CUlibrary) on several GPUs, with managed variables. Each managed variable exists once for all GPUs, as
// natively, because the driver loads these modules as one library too (cuLibraryGetManaged: it "is shared across devices").
//
// Of the session; used only with SessionState::moduleLoading held. A suspend drops it: recipes, and the saved rows of the module groups,
// name the library.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "stub/driver/driver.h"

namespace vgpu::stub {

class SharedModules {
 public:
  explicit SharedModules(const Driver& driver) : driver(driver) {}

  struct Jit {
    unsigned count = 0;
    CUjit_option* options = nullptr;
    void** values = nullptr;
  };
  // Loads an image into the current context, as the module of the library with that number. With 0, and for a second module of that library
  // in this context, the module shares no variables. CUDA's result. `variables`: names of variables that the image may have.
  CUresult load(uint64_t library, const void* image, const std::set<std::string>& variables, const Jit& jit, CUmodule& real);
  // Unloads any module: one of a library stays loaded until the last of that library is unloaded. CUDA's result.
  CUresult unload(CUmodule real);
  // Whether loading the present modules of its library in their order would place the managed variables elsewhere: the device whose load
  // placed them has unloaded its module, or a device has unloaded and loaded its module again.
  bool isTorn(CUmodule real) const;
  // Forgets a module that has ended with its context or its group.
  void forget(CUmodule real);

 private:
  struct Shared {
    CUlibrary real = nullptr;
    CUmodule first = nullptr;       // the load that placed the managed variables
    bool isTorn = false;
    std::map<CUmodule, bool> live;  // whether the session has the module loaded
  };
  CUresult initialize(CUmodule real, const void* image, const std::set<std::string>& variables, const Jit& jit) const;

  const Driver& driver;
  std::map<uint64_t, Shared> libraries;  // by the program's number
};

}  // namespace vgpu::stub
