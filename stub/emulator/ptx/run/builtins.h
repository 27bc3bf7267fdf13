// Functions that device code calls without defining them in PTX: printf() and similar ones, and CUDA's device runtime.
#pragma once

#include <string_view>

#include "stub/emulator/ptx/lanes/instruction.h"

namespace vgpu::emulator {

class Warp;

struct BuiltinRow {
  std::string_view name;
  size_t arguments, results;
  Handler handler;
};

bool isBuiltin(std::string_view name);
// The handler of a call (aux: CallSite) of the builtin `name`; nullptr if there is none.
Handler findBuiltin(std::string_view name, size_t arguments, size_t results);

// malloc() and free(): 0 if there is no room; false if the address does not come from malloc().
uint64_t allocateFromHeap(Warp&, uint64_t bytes);
bool releaseToHeap(Warp&, uint64_t address);

}  // namespace vgpu::emulator
