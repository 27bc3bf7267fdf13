// Modules of one library of code on several GPUs, with managed variables: these are one for all of them, as natively, because the
// driver loads such modules as one library too (cuLibraryGetManaged: it "is shared across devices").
//
// Of the session; used by whoever holds SessionState::moduleLoading. A suspend drops it: recipes, and what a snapshot keeps of the
// modules' groups, name the library.
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
  // Loads an image into the current context, as the module of the library with that number; 0: it has all for itself, and so has a
  // second one of that library in this context. CUDA's answer. `variables`: what names of variables the image may have.
  CUresult load(uint64_t library, const void* image, const std::set<std::string>& variables, const Jit& jit, CUmodule& real);
  // Unloads any module: one of a library stays where it is until the last of that library is unloaded. CUDA's answer.
  CUresult unload(CUmodule real);
  // Whether loading the modules that the session has of its library, in their order, would put the managed variables elsewhere: the
  // device that has placed them has given its module up, or one has taken its module again.
  bool isTorn(CUmodule real) const;
  // It is gone, with its context or its group.
  void forget(CUmodule real);

 private:
  struct Shared {
    CUlibrary real = nullptr;
    CUmodule first = nullptr;       // with it the managed variables were placed
    bool isTorn = false;
    std::map<CUmodule, bool> live;  // by module: whether the session has it
  };
  CUresult initialize(CUmodule real, const void* image, const std::set<std::string>& variables, const Jit& jit) const;

  const Driver& driver;
  std::map<uint64_t, Shared> libraries;  // by the program's number
};

}  // namespace vgpu::stub
