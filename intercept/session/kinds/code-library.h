#pragma once

#include <memory>

#include "intercept/session/kinds/head.h"
#include "intercept/session/modules/code-library.h"

namespace vgpu::client {

// Of a live one the pointer is never null.
struct CodeLibraryState : ObjectHead {
  std::unique_ptr<CodeLibrary> code;
  void reset() { code.reset(); }
};

struct KernelState : ObjectHead {
  std::unique_ptr<LibraryKernel> kernel;
  void reset() { kernel.reset(); }
};

}  // namespace vgpu::client
