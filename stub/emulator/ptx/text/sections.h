// A module's variables and the sections of its image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "stub/emulator/ptx/text/types.h"

namespace vgpu::emulator {

enum class VariableSpace { global, constant };

// A contiguous part of the image: one variable, or several.
struct Section {
  uint64_t bytes = 0, align = 1;
  bool managed = false;
};

// The place of a section: its device address, and its address in this process. `hasValues`: another module has written the initial values.
struct SectionPlace {
  uint64_t base = 0;
  std::byte* host = nullptr;
  bool hasValues = false;
};

// A module variable: `bytes` at `offset` of its section.
struct Variable {
  std::string name;
  VariableSpace space;
  uint32_t section;
  uint64_t offset, bytes;
  bool managed = false;
  Type type = Type::none;
};

}  // namespace vgpu::emulator
