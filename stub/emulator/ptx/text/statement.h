// One PTX instruction in text form.
#pragma once

#include <string_view>
#include <vector>

#include "stub/emulator/ptx/text/lexer.h"

namespace vgpu::emulator {

struct Operand {
  enum class Kind : uint8_t { name, number, memory, vector, list, pair };
  Kind kind = Kind::name;
  bool negated = false;   // !p
  bool minus = false;     // sign of a floating-point number; -r for a register
  bool isFloat = false;   // of number: `token` holds it; otherwise `whole`
  std::string_view name;  // of name, and of memory if the base is a name
  Token token;
  uint64_t whole = 0;
  int64_t offset = 0;          // name + offset; [base + offset]
  std::vector<Operand> parts;  // of vector, list and pair; of memory: coordinates
  int line = 0;
};

struct Statement {
  int line = 0;
  std::string_view opcode;              // as written
  std::vector<std::string_view> parts;  // split at its dots: parts[0] is the mnemonic
  std::string_view guard;               // empty: none
  bool guardNegated = false;
  std::vector<Operand> operands;

  bool has(std::string_view part) const;
  std::string_view last() const { return parts.back(); }
};

// Parses from the guard or opcode to the `;`. Throws PtxError.
Statement parseStatement(Lexer&);

}  // namespace vgpu::emulator
