// The CUDA driver as a table of functions, loaded at run time: the real libcuda.so.1 or the emulated one. Nothing of ours
// is linked against a driver, so the same worker serves both, and the versions are asked for by number.
//
// Immutable after loading, but for the order of devices, which is set while no session is there; any thread may call. Nothing of
// it survives a suspend.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::stub {

struct Driver {
  // Loads `library` (a name for dlopen) and resolves the newest version of every entry through its cuGetProcAddress. One that it
  // lacks returns CUDA_ERROR_NOT_SUPPORTED. Throws kj::Exception naming one that it lacks although it is not newer than CUDA 12.0
  // and a frame needs it.
  static Driver load(const std::string& library);

// The deprecated ones are entries like any other.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define DRIVER(name, isNeeded) decltype(&::name) name = nullptr;
#include "cuda-driver-entries.inc"
#undef DRIVER
#pragma GCC diagnostic pop

  // The emulated device's own: tell it where the program's allocations lie, so that it can say which one was overrun.
  // nullptr on a real driver.
  void (*noteAllocation)(uint64_t address, uint64_t bytes, const char* owner) = nullptr;
  void (*forgetAllocation)(uint64_t address) = nullptr;

  // The driver's devices that are the session's, by number; one may be there several times. Empty: each is the one of its number.
  std::vector<CUdevice> order;
  CUdevice device(unsigned number) const { return number < order.size() ? order[number] : static_cast<CUdevice>(number); }
};

// "CUDA_ERROR_OUT_OF_MEMORY (2)", for messages.
std::string nameOf(const Driver& driver, CUresult result);

// As NVML and nvidia-smi write it: GPU-, and hexadecimal digits in groups of 8, 4, 4, 4 and 12.
std::string uuidText(const CUuuid& uuid);

// Throws kj::Exception "WHAT: CUDA_ERROR_…" unless `result` is success.
void require(const Driver& driver, CUresult result, const char* what);

// ", which means that ..." for a module that was loaded and has no code for its GPU; else empty.
const char* lacksCode(CUresult result);

// What CUDA says of a failed context: the error comes back from every later call.
bool isSticky(CUresult result);

}  // namespace vgpu::stub
