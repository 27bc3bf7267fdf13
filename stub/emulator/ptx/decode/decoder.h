// Decodes one function's body. Each family of instructions is a file with free functions over a Decoder, found through its table;
// instructions in no table are refused by name.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "stub/emulator/ptx/decode/ir.h"
#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/statement.h"

namespace vgpu::emulator {

class Linker;

// The meaning of a name in a body.
struct Symbol {
  enum class Kind : uint8_t {
    reg,
    shared,
    dynamicShared,
    local,
    address,
    kernelParameter,
    parameter,
    function,
    label,
    prototype,
    targets
  };
  Kind kind;
  Type type = Type::none;
  Value value;          // of reg
  uint64_t offset = 0;  // in its space; of address: the address; of parameter: in the parameter area
  uint32_t bytes = 0;   // of parameter and kernelParameter
  int label = -1;
  Space space = Space::none;  // of address
  std::vector<int> labels;                       // of targets
  const FunctionDecl* prototype = nullptr;       // of prototype: the parameters that a call must match
  std::optional<uint64_t> local = std::nullopt;  // of parameter: the offset of its copy in local memory, if its address is taken
};

// A parameter of a function consists of rows of 4-byte lanes: their number, and their place in a frame.
inline uint32_t rowsOf(uint32_t bytes) { return (bytes + 3) / 4; }
inline Slot slotOf(uint64_t offset, uint32_t bytes) { return {static_cast<int32_t>(offset), rowsOf(bytes) * 4 * laneCount}; }

class Decoder {
 public:
  Decoder(Linker&, const FunctionDecl&, Function&);
  void run();

  // ---- for the families' decoders
  Builder& build() { return builder; }
  Linker& linker() { return kernelLinker; }
  Ir& ir() { return body; }
  Function& function() { return made; }
  const FunctionDecl& decl() const { return declaration; }

  // The lanes of an operand, `bytes` wide. Literals are read according to `literal`.
  Value source(const Operand&, uint32_t bytes, Literal literal = Literal::whole);
  Value source(const Operand& operand, const Shape& shape) {
    return source(operand, shape.registerBytes, shape.literal);
  }
  Value predicate(const Operand&);  // with its negation applied
  // The register for a result of `bytes`. If the register is wider, the result is extended after the statement.
  Value target(const Operand&, uint32_t bytes, bool isSigned = false);
  // The register that `operand` names; nullptr if it names none.
  const Symbol* findRegister(const Operand&);
  const Symbol* find(std::string_view name);
  std::optional<Symbol> findGlobal(std::string_view name);
  // The label `name`; if it is not defined yet, its place is filled in later.
  int labelOf(std::string_view name, int line, bool defines = false);
  // An address operand in `space`, as a register of addresses and an immediate offset.
  struct Address {
    Value base;
    uint64_t offset;
  };
  Address address(const Operand&);
  // The generic address of a memory operand, as one value. `shared`: the operand is an offset in shared memory.
  Value genericAddress(const Operand&, bool shared);
  uint32_t operandCount(const Statement&, size_t least, size_t most);
  int epilogue();
  // The carry flag that .cc instructions write and addc, subc and madc read: a hidden register of the function.
  Value carry() { return carryFlag ? carryFlag : carryFlag = builder.reg(4); }

  Value controlGuard() const { return guardPredicate; }
  bool controlGuardNegated() const { return guardNegated; }

  [[noreturn]] void invalid(int line, const std::string& what) const;
  [[noreturn]] void unsupported(const Statement&) const;
  [[noreturn]] void unsupported(int line, const std::string& what) const;

 private:
  struct Range {
    std::string_view prefix;
    uint64_t count;
    Type type;
  };
  struct Scope {
    std::unordered_map<std::string_view, Symbol> symbols;
    std::vector<Range> ranges;
    std::unordered_map<std::string_view, std::vector<std::string_view>> vectors;
    uint32_t fixedMark = 0;
  };

  void parameters();
  void copyParameter(const ParameterDecl&);
  void results();
  void block(Lexer&);
  void item(Lexer&);
  bool directive(Lexer&, const Token&);
  void registers(Lexer&);
  void vectorRegister(const Token& name, Type, uint32_t elements);
  void expandVectors(std::vector<Operand>&);
  void variables(Lexer&, Space, int line);
  void localParameter(Lexer&, int line);
  void location(Lexer&, const Token&);
  bool labelled(Lexer&);
  void prototypeOrTargets(Lexer&, std::string_view name);
  void statement(const Statement&);
  void closeScope();
  void finish();
  void mergeLabel(int inner, int outer);
  void placeMerged();
  Value literalValue(const Operand&, uint32_t bytes, Literal literal);
  Value addressOf(const Symbol&, int64_t offset, uint32_t bytes, int line);
  Value fit(Value, uint32_t bytes, int line);
  Scope& scope() { return *scopes.back(); }

  struct LabelUse {
    int label;
    int line;
    std::string_view name;
  };

  Linker& kernelLinker;
  const FunctionDecl& declaration;
  Function& made;
  Ir body;
  Builder builder;
  std::vector<std::unique_ptr<Scope>> scopes;
  std::vector<std::vector<std::pair<std::string_view, LabelUse>>> pendingLabels;  // for each open scope
  struct Extension {
    Value to, from;
    bool isSigned;
  };
  std::vector<Extension> extensions;
  void extend(const Extension&);
  std::deque<FunctionDecl> prototypes;
  std::deque<std::string> names;  // of variables declared in the body, whose declarations do not outlive it
  std::map<std::pair<Space, std::string>, size_t> staticsSeen;  // number of .global and .const variables by name: several blocks may
                                                                // declare the same name
  Value guardPredicate;           // guard of the control statement being decoded
  bool guardNegated = false;
  uint32_t localTop = 0;
  std::vector<std::pair<int, int>> merged;
  int epilogueLabel = -1;
  Value carryFlag;
  int depth = 0;
};

// A family's decoder. The statement's guard is set on the builder, except for control families.
using Decode = void (*)(Decoder&, const Statement&);
struct DecodeRow {
  std::string_view mnemonic;
  Decode decode;
  bool isControl = false;  // a guard is a branch around the instruction, instead of applying to each lane
};
const DecodeRow* findDecode(std::string_view mnemonic);

// The tables, one for each family.
std::span<const DecodeRow> moveDecodes();
std::span<const DecodeRow> arithmeticDecodes();
std::span<const DecodeRow> videoDecodes();
std::span<const DecodeRow> scalarVideoDecodes();
std::span<const DecodeRow> compareDecodes();
std::span<const DecodeRow> convertDecodes();
std::span<const DecodeRow> memoryDecodes();
std::span<const DecodeRow> controlDecodes();
std::span<const DecodeRow> warpDecodes();
std::span<const DecodeRow> asyncDecodes();
std::span<const DecodeRow> matrixDecodes();
std::span<const DecodeRow> warpgroupDecodes();
std::span<const DecodeRow> textureDecodes();
// Decodes instructions that are rows of the registry, with any mnemonic; false if no row fits.
bool decodeLane(Decoder&, const Statement&);

// Loads and stores of call parameters, which lie in lanes and not in memory.
void decodeParameterLoad(Decoder&, const Statement&, const Symbol&, Type, const Operand& to, int64_t offset);
void decodeParameterStore(Decoder&, const Statement&, const Symbol&, Type, const Operand& from, int64_t offset);

void decodeCall(Decoder&, const Statement&);

// Special registers (%tid.x); empty if there is none by that name.
Value readSpecial(Decoder&, std::string_view name);
// Extends a special register's 32 bits to 64.
Value widenSpecial(Decoder&, Value);

}  // namespace vgpu::emulator
