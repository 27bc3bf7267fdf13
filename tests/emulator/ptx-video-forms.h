// Scalar video instructions as the PTX ISA describes them.
#pragma once

#include "ptx-forms.h"

namespace vgpu::emulator {

struct VideoForm {
  std::string operation;       // vadd, …
  std::string d, a, b;         // types
  std::string into, ofA, ofB;  // selectors: b0, h1, or none
  std::string second;          // add, min, max, or none
  std::string how;             // clamp, wrap; a comparison; for vmad shr7, shr15 or none
  std::string sign;            // for vmad: the negated operand a, b or c; + for .po
  bool saturates = false;

  std::string text() const;  // with the operands D, A, B and C
  uint32_t result(uint32_t a, uint32_t b, uint32_t c) const;
};
std::vector<VideoForm> videoForms();

}  // namespace vgpu::emulator
