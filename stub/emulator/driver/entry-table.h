// Every entry of the driver API that the emulator has: its name, the CUDA version it came with and the function.
#pragma once

#include <span>
#include <string_view>

#include "stub/emulator/driver/cuda-api.h"

namespace vgpu::emulator::api {

struct Entry {
  std::string_view name;  // as a program asks for it: cuMemAlloc
  int since;              // CUDA version that it came with, 3020 for 3.2
  void* function;
  void* perThread;  // the flavour whose null stream is the thread's own; null if that makes no difference
};

std::span<const Entry> entries();

struct Lookup {
  void* function = nullptr;
  bool known = false;  // the name exists, in a later version perhaps
};
// The newest form of the base name `name` that `version` has. Names with a suffix (cuMemAlloc_v2, cuLaunchKernel_ptsz)
// are not found: the driver does not know them either.
Lookup findEntry(std::string_view name, int version, bool perThread);

}  // namespace vgpu::emulator::api
