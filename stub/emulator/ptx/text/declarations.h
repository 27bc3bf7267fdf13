// The declarations in a module's text, found without parsing bodies. Views point into the module's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stub/emulator/ptx/text/types.h"

namespace vgpu::emulator {

enum class Space : uint8_t { none, reg, global, constant, shared, local, param };

// An address in an initialiser: 8 bytes (or `bytes` of it, shifted right by `shift`) at `offset`.
struct Relocation {
  uint64_t offset;
  std::string symbol;
  int64_t addend;
  uint32_t bytes;
  uint32_t shift;
  int line;
};

struct VariableDecl {
  std::string name;
  Space space = Space::none;
  Type type = Type::none;
  uint64_t bytes = 0;
  uint32_t align = 1;
  bool isExtern = false, isWeak = false, isVisible = false, managed = false, unsizedArray = false;
  std::vector<std::byte> initial;  // shorter than `bytes` if the rest is zero
  std::vector<Relocation> relocations;
  int line = 0;
};

struct ParameterDecl {
  std::string_view name;
  Space space = Space::param;  // or reg
  Type type = Type::none;
  uint32_t bytes = 0, align = 1, offset = 0;
  bool isArray = false;
};

struct FunctionDecl {
  std::string name;
  bool isKernel = false, isExtern = false, hasBody = false, isWeak = false, isVisible = false;
  std::vector<ParameterDecl> parameters, results;
  std::string_view body;
  int line = 0, bodyLine = 0;
  uint32_t maxThreads = 0;                        // .maxntid, .reqntid; 0: none
  uint32_t mostRegisters = 0, blocksAtOnce = 0;  // .maxnreg, .minnctapersm; 0: none
  std::array<uint32_t, 3> cluster{};  // .reqnctapercluster; zeros: none
  bool explicitCluster = false;
  std::vector<VariableDecl> statics;  // .global and .const declared inside the body
};

struct Declarations {
  int version = 0;  // 90 for 9.0
  int target = 0;   // 75 for sm_75
  std::vector<VariableDecl> variables;
  std::vector<FunctionDecl> functions;
  std::unordered_map<std::string_view, size_t> variableIndex, functionIndex;
  std::unordered_map<std::string_view, std::string_view> aliases;
  std::map<int, std::string> files;  // .file
};

// Throws PtxError. `text` must outlive the result.
Declarations scan(std::string_view text);

class Lexer;
// Parses a variable declaration after its state space (`.global`, already read) up to its `;`. Several declarators give several variables.
std::vector<VariableDecl> parseVariables(Lexer&, Space, int line);
// Parses `= …` for a variable with known type and size.
void parseInitializer(Lexer&, VariableDecl&);
std::optional<Space> findSpace(std::string_view word);  // ".global" and so on
// Parses formal parameters, after their `(` up to their `)`.
std::vector<ParameterDecl> parseParameters(Lexer&);
// Parses an integer in PTX's notation, or an expression over integers.
uint64_t parseConstant(Lexer&);

}  // namespace vgpu::emulator
