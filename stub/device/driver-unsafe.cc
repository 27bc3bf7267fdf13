#include <dlfcn.h>
#include <kj/debug.h>

#include "stub/device/driver.h"

namespace vgpu::stub {

namespace {

// An entry's base name: cuda.h's macros add _v2, _v3, …; the version number asked for selects among them.
std::string baseName(std::string symbol) {
  auto suffix = symbol.rfind("_v");
  if (suffix != std::string::npos && suffix + 3 == symbol.size()) symbol.resize(suffix);
  return symbol;
}

}  // namespace

Driver Driver::load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  KJ_REQUIRE(handle != nullptr, "cannot load the CUDA driver", library.c_str(), dlerror());
  auto getProcAddress = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(dlsym(handle, "cuGetProcAddress_v2"));
  KJ_REQUIRE(getProcAddress != nullptr, "this driver is older than CUDA 12", library.c_str());
  Driver driver;
#define DRIVER(name, since)                                                                            \
  {                                                                                                    \
    void* function = nullptr;                                                                          \
    CUdriverProcAddressQueryResult found;                                                              \
    CUresult result = getProcAddress(baseName(#name).c_str(), &function, since, 0, &found);            \
    KJ_REQUIRE(result == CUDA_SUCCESS && function != nullptr, "the driver lacks an entry", #name, since); \
    driver.name = reinterpret_cast<decltype(&::name)>(function);                                       \
  }
#include "stub/device/driver-entries.inc"
#undef DRIVER
  driver.noteAllocation = reinterpret_cast<decltype(driver.noteAllocation)>(dlsym(handle, "vgpuEmulatorNote"));
  driver.forgetAllocation = reinterpret_cast<decltype(driver.forgetAllocation)>(dlsym(handle, "vgpuEmulatorForget"));
  return driver;
}

}  // namespace vgpu::stub
