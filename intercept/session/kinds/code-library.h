#pragma once

#include <memory>

#include "intercept/session/kinds/head.h"
#include "intercept/session/modules/code-library.h"

namespace vgpu::client {

// The pointer is never null while the library is live.
struct CodeLibraryState : ObjectHead {
  std::unique_ptr<CodeLibrary> code;
  void reset() { code.reset(); }
};

struct KernelState : ObjectHead {
  std::unique_ptr<LibraryKernel> kernel;
  void reset() { kernel.reset(); }
};

}  // namespace vgpu::client
