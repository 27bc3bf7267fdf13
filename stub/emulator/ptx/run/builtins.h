// Functions that device code calls and no PTX defines: the device runtime's.
#pragma once

#include <string_view>

#include "stub/emulator/ptx/lanes/instruction.h"

namespace vgpu::emulator {

bool isBuiltin(std::string_view name);
// Handler of a call instruction (aux: CallSite) of the builtin `name`; nullptr if there is none.
Handler findBuiltin(std::string_view name, size_t arguments, size_t results);

}  // namespace vgpu::emulator
