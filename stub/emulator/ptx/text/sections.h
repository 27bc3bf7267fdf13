// A module's variables and the sections of its image, as the device sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "stub/emulator/ptx/text/types.h"

namespace vgpu::emulator {

enum class VariableSpace { global, constant };

// A part of the image that lies in one piece: a variable, or several.
struct Section {
  uint64_t bytes = 0, align = 1;
  bool managed = false;
};

// Where a section is: its device address, and where this process sees it. `hasValues`: another module has put the initial ones there.
struct SectionPlace {
  uint64_t base = 0;
  std::byte* host = nullptr;
  bool hasValues = false;
};

// A module variable as the program names it: `bytes` at `offset` of its section.
struct Variable {
  std::string name;
  VariableSpace space;
  uint32_t section;
  uint64_t offset, bytes;
  bool managed = false;
  Type type = Type::none;
};

}  // namespace vgpu::emulator
