// The parts of an ELF file that hold its constants, including strings.
#pragma once

#include <vector>

#include "vgpu/image/elf.h"

namespace vgpu::image {

struct Part {
  Bytes bytes;
  uint64_t address;  // virtual address
};

// .rodata; in a file without section headers, every segment that is not writable.
inline std::vector<Part> constantsOf(const Elf& file) {
  if (auto section = file.findSection(".rodata")) return {{file.bytesOf(*section), section->sh_addr}};
  std::vector<Part> parts;
  for (const auto& segment : file.segments())
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0) parts.push_back({file.bytesOf(segment), segment.p_vaddr});
  return parts;
}

}  // namespace vgpu::image
