// Modules of one library of code on several GPUs, with managed variables: these are one for all of them, as natively, because the
// driver loads such modules as one library too (cuLibraryGetManaged: it "is shared across devices").
//
// Of the session; used by whoever holds SessionState::moduleLoading. A suspend drops it: recipes, and what a snapshot keeps of the
// modules' groups, name the library.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>

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
  // second one of that library in this context. CUDA's answer.
  CUresult load(uint64_t library, const void* image, const Jit& jit, CUmodule& real);
  // Unloads any module: one of a library stays where it is until the last of that library is unloaded. CUDA's answer.
  CUresult unload(CUmodule real);
  // Whether modules of other devices share its managed variables.
  bool isShared(CUmodule real) const;
  // It is gone, with its context or its group.
  void forget(CUmodule real);

 private:
  struct Shared {
    CUlibrary real = nullptr;
    std::map<CUmodule, bool> live;  // by module: whether the session has it
  };
  const Driver& driver;
  std::map<uint64_t, Shared> libraries;  // by the program's number
};

}  // namespace vgpu::stub
