// Functions that device code calls and no PTX defines: printf() and the like, and those of CUDA's device runtime.
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
// Handler of a call instruction (aux: CallSite) of the builtin `name`; nullptr if there is none.
Handler findBuiltin(std::string_view name, size_t arguments, size_t results);

// malloc() and free(): 0 if there is no room; false if malloc() did not give the address.
uint64_t allocateFromHeap(Warp&, uint64_t bytes);
bool releaseToHeap(Warp&, uint64_t address);

}  // namespace vgpu::emulator
