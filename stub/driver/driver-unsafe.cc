#include <dlfcn.h>
#include <kj/debug.h>

#include <string>
#include <string_view>

#include "stub/driver/driver-addresses.h"
#include "stub/driver/driver.h"
#include "vgpu/api/driver-entries.h"

namespace vgpu::stub {

namespace {

// Places only blocks of modules: the emulated device chooses the addresses of all others.
uint64_t placeModuleBlock(uint64_t bytes) { return DriverAddresses::ofProcess().takeForModules(bytes); }

constexpr unsigned oldestDriver = 12000;

// Stands in for an entry that the driver does not have.
template <typename Function>
struct Missing;
template <typename... Arguments>
struct Missing<CUresult(CUDAAPI*)(Arguments...)> {
  static CUresult CUDAAPI call(Arguments...) { return CUDA_ERROR_NOT_SUPPORTED; }
};

// Finds one entry; null if the driver does not have it. A function and not a part of the macro, because there are hundreds of entries.
void* find(decltype(&::cuGetProcAddress_v2) getProcAddress, std::string_view name, int since, bool isNeeded) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult found;
  CUresult result = getProcAddress(std::string(name).c_str(), &function, since, 0, &found);
  if (result == CUDA_SUCCESS && function != nullptr) return function;
  KJ_REQUIRE(!isNeeded || static_cast<unsigned>(since) > oldestDriver, "the driver lacks an entry", std::string(name).c_str(), since);
  return nullptr;
}

}  // namespace

Driver Driver::load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  KJ_REQUIRE(handle != nullptr, "cannot load the CUDA driver", library.c_str(), dlerror());
  auto getProcAddress = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(dlsym(handle, "cuGetProcAddress_v2"));
  KJ_REQUIRE(getProcAddress != nullptr, "this driver is older than CUDA 12", library.c_str());
  Driver driver;
#define DRIVER(name, isNeeded)                                                                             \
  {                                                                                                     \
    constexpr auto& row = api::entryOf(#name);                                                          \
    void* function = find(getProcAddress, api::baseNameOf(row.symbol), row.since, isNeeded);            \
    using Function = decltype(&::name);                                                                 \
    driver.name = function == nullptr ? &Missing<Function>::call : reinterpret_cast<Function>(function); \
  }
// The table has deprecated entries too.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "cuda-driver-entries.inc"
#pragma GCC diagnostic pop
#undef DRIVER
  driver.noteAllocation = reinterpret_cast<decltype(driver.noteAllocation)>(dlsym(handle, "vgpuEmulatorNote"));
  driver.forgetAllocation = reinterpret_cast<decltype(driver.forgetAllocation)>(dlsym(handle, "vgpuEmulatorForget"));
  using PlaceBlocks = void (*)(uint64_t (*)(uint64_t), void (*)(uint64_t, uint64_t));
  if (auto placeBlocks = reinterpret_cast<PlaceBlocks>(dlsym(handle, "vgpuEmulatorPlaceBlocks"))) {
    placeBlocks(placeModuleBlock, [](uint64_t address, uint64_t bytes) { DriverAddresses::ofProcess().give(address, bytes); });
    DriverAddresses::ofProcess().noteAsked();
  }
  return driver;
}

}  // namespace vgpu::stub
