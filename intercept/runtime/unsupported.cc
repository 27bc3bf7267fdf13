// The functions of the toolkit's libcudart that have no row. They exist so that every program links and starts; a call returns CUDA's own
// error and prints once the function's name and the reason in forbidden.list. The list is generated: NVIDIA's exports minus the functions
// that the rows define.
#include <driver_types.h>

#include <atomic>

#include "intercept/runtime/last-error.h"
#include "intercept/runtime/message.h"

namespace vgpu::runtime {
namespace {

int refuse(const char* name, const char* why, std::atomic<bool>& said) {
  if (!said.exchange(true)) say({name, " is not available on a virtual GPU (", why, "); it returns cudaErrorNotSupported"});
  return remember(cudaErrorNotSupported);
}

}  // namespace
}  // namespace vgpu::runtime

// On x86-64 the caller passes and removes arguments, so a function without parameters serves every signature.
#define UNSUPPORTED(name, why)                                  \
  extern "C" __attribute__((visibility("default"))) int name(); \
  extern "C" int name() {                                       \
    static constinit std::atomic<bool> said = false;            \
    return vgpu::runtime::refuse(#name, why, said);             \
  }
#include "unsupported-list.inc"
