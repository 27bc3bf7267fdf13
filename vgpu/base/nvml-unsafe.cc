#include <dlfcn.h>

#include "vgpu/base/nvml.h"

namespace vgpu {
namespace {

void* begin() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  return initialize != nullptr && initialize() == nvmlSuccess ? library : nullptr;
}

}  // namespace

void* nvmlFunction(const char* name) {
  static void* const library = begin();
  return library == nullptr ? nullptr : dlsym(library, name);
}

}  // namespace vgpu
