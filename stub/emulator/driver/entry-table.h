// Every entry of the driver API that the emulator has: its name, the CUDA version that introduced it, and the function.
#pragma once

#include <span>
#include <string_view>

#include "stub/emulator/driver/cuda-api.h"

namespace vgpu::emulator::api {

struct Entry {
  std::string_view name;  // the base name that a program asks for: cuMemAlloc
  int since;              // CUDA version that introduced it, 3020 for 3.2
  void* function;
  void* perThread;  // the variant whose null stream is the thread's own; null if there is no difference
};

std::span<const Entry> entries();

struct Lookup {
  void* function = nullptr;
  bool known = false;  // the name exists, perhaps only in a later version
};
// The newest version of the entry with the base name `name` that is not newer than `version`. Names with a suffix (cuMemAlloc_v2,
// cuLaunchKernel_ptsz) are not found, as in the driver.
Lookup findEntry(std::string_view name, int version, bool perThread);

}  // namespace vgpu::emulator::api
