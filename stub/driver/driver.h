// The CUDA driver as a table of functions, loaded at run time: the real libcuda.so.1 or the emulated one. The worker is not linked against
// a driver, so the same worker serves both, and asks for entries by their version numbers.
//
// Immutable after loading, except for the order of devices, which is set while there is no session; any thread may call. Nothing of it
// survives a suspend.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::stub {

struct Driver {
  // Loads `library` (a name for dlopen) and resolves the newest version of every entry through its cuGetProcAddress. A missing entry
  // returns CUDA_ERROR_NOT_SUPPORTED. Throws kj::Exception that names a missing entry if a frame needs it and it exists since CUDA 12.0 or
  // before.
  static Driver load(const std::string& library);

// The table has deprecated entries too.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define DRIVER(name, isNeeded) decltype(&::name) name = nullptr;
#include "cuda-driver-entries.inc"
#undef DRIVER
#pragma GCC diagnostic pop

  // Extensions of the emulated device: tell it the ranges of the program's allocations, so that it can name the one that a kernel overruns.
  // nullptr on a real driver.
  void (*noteAllocation)(uint64_t address, uint64_t bytes, const char* owner) = nullptr;
  void (*forgetAllocation)(uint64_t address) = nullptr;

  // The driver's devices that the session uses, by the session's numbers; a device may occur several times. Empty: the numbers are the
  // driver's.
  std::vector<CUdevice> order;
  CUdevice device(unsigned number) const { return number < order.size() ? order[number] : static_cast<CUdevice>(number); }
};

// "CUDA_ERROR_OUT_OF_MEMORY (2)", for messages.
std::string nameOf(const Driver& driver, CUresult result);

// In the form of NVML and nvidia-smi: GPU-, and hexadecimal digits in groups of 8, 4, 4, 4 and 12.
std::string uuidText(const CUuuid& uuid);

// Throws kj::Exception "WHAT: CUDA_ERROR_…" unless `result` is success.
void require(const Driver& driver, CUresult result, const char* what);

// ", which means that ..." if a module was loaded that has no code for its GPU; else empty.
const char* lacksCode(CUresult result);

// Whether the error is CUDA's state of a failed context: every later call returns it.
bool isSticky(CUresult result);

}  // namespace vgpu::stub
