// Errors in PTX text.
#pragma once

#include <stdexcept>
#include <string>

namespace vgpu::emulator {

// The reason why a module was refused. `line` counts from 1 in the PTX text; 0 if no line applies.
struct PtxError : std::runtime_error {
  enum class Kind { invalid, unsupported, unresolved };
  PtxError(Kind kind, int line, std::string message);
  Kind kind;
  int line;
};

}  // namespace vgpu::emulator
