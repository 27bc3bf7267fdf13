// Parameters of device functions. A parameter consists of rows of 4-byte lanes, so that a call copies whole rows and needs no memory; all
// accesses to it are known from the text.
#include <cctype>

#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

constexpr uint32_t rowBytes = 4 * laneCount;

uint32_t checked(Decoder& decoder, const Statement& statement, const Symbol& symbol, Type type, int64_t offset) {
  const uint32_t size = sizeOf(type);
  if (offset < 0 || static_cast<uint64_t>(offset) + size > rowsOf(symbol.bytes) * 4)
    decoder.invalid(statement.line, "an access past the end of a parameter");
  if (static_cast<uint64_t>(offset) % std::min(size, 4u))
    decoder.unsupported(statement.line, "a misaligned access to a parameter");
  return static_cast<uint32_t>(offset);
}

Value word(Decoder& decoder, const Symbol& symbol, uint32_t offset) {
  return decoder.build().fixed(static_cast<uint32_t>(symbol.offset) + offset / 4 * rowBytes, 4);
}

// A statement for helpers that report lines, while no statement is being decoded.
Statement atLine(int line) {
  Statement statement;
  statement.line = line;
  return statement;
}

// An operand with this name.
Operand named(std::string_view name) {
  Operand operand;
  operand.name = name;
  return operand;
}

bool isPartOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }

// Whether `name` occurs in a function's text other than as the base of an address in brackets.
bool takesAddress(std::string_view body, std::string_view name) {
  for (size_t at = body.find(name); at != std::string_view::npos; at = body.find(name, at + name.size())) {
    const size_t end = at + name.size();
    if ((at > 0 && isPartOfName(body[at - 1])) || (end < body.size() && isPartOfName(body[end]))) continue;
    const size_t before = at == 0 ? std::string_view::npos : body.find_last_not_of(" \t\r\n", at - 1);
    if (before == std::string_view::npos || body[before] != '[') return true;
  }
  return false;
}

}  // namespace

void decodeParameterLoad(Decoder& decoder, const Statement& statement, const Symbol& symbol, Type type,
                         const Operand& to, int64_t at) {
  const uint32_t offset = checked(decoder, statement, symbol, type, at), size = sizeOf(type);
  Builder& build = decoder.build();
  const Value low = word(decoder, symbol, offset);
  const Value target = decoder.target(to, registerBytes(type), isSigned(type));
  if (size == 4) return build.move(target, low);
  if (size < 4) {
    build.lane(isSigned(type) ? "bfe.s32" : "bfe.u32", target,
               {low, build.constant(4, offset % 4 * 8), build.constant(4, size * 8)});
    return;
  }
  if (size == 8) return build.lane("pack.b64", target, {low, word(decoder, symbol, offset + 4)});
  const Value halves[] = {build.reg(8), build.reg(8)};
  build.lane("pack.b64", halves[0], {low, word(decoder, symbol, offset + 4)});
  build.lane("pack.b64", halves[1], {word(decoder, symbol, offset + 8), word(decoder, symbol, offset + 12)});
  build.lane("pack.b128", target, {halves[0], halves[1]});
}

void decodeParameterStore(Decoder& decoder, const Statement& statement, const Symbol& symbol, Type type,
                          const Operand& from, int64_t at) {
  const uint32_t offset = checked(decoder, statement, symbol, type, at), size = sizeOf(type);
  Builder& build = decoder.build();
  const Literal literal = type == Type::f32 ? Literal::f32 : type == Type::f64 ? Literal::f64 : Literal::whole;
  const Value value = decoder.source(from, registerBytes(type), literal);
  const Value low = word(decoder, symbol, offset);
  const auto storeWide = [&](Value wide, uint32_t begin) {
    build.lane("lo.b64", word(decoder, symbol, begin), {wide});
    build.lane("hi.b64", word(decoder, symbol, begin + 4), {wide});
  };
  if (size == 4) return build.move(low, value);
  if (size == 8) return storeWide(value, offset);
  if (size < 4) {
    build.lane("bfi.b32", low, {value, low, build.constant(4, offset % 4 * 8), build.constant(4, size * 8)});
    return;
  }
  const Value halves[] = {build.reg(8), build.reg(8)};
  build.lane("lo.b128", halves[0], {value});
  build.lane("hi.b128", halves[1], {value});
  storeWide(halves[0], offset);
  storeWide(halves[1], offset + 8);
}

// Parameters of a kernel lie in the launch's parameter block; those of a function in lanes at the beginning of the frame, from which
// parameters that are registers are loaded first.
void Decoder::parameters() {
  const auto add = [&](const ParameterDecl& parameter, std::vector<Slot>& slots) {
    if (parameter.type == Type::pred)
      unsupported(declaration.line, "a predicate as parameter '" + std::string(parameter.name) + "'");
    Symbol symbol{Symbol::Kind::parameter, parameter.type};
    symbol.bytes = parameter.bytes;
    symbol.offset = builder.reserveFixed(rowsOf(parameter.bytes));
    slots.push_back(slotOf(symbol.offset, parameter.bytes));
    if (parameter.space == Space::reg) {
      const Symbol inFrame = symbol;
      symbol.kind = Symbol::Kind::reg;
      symbol.value = builder.reg(registerBytes(parameter.type));
      scope().symbols[parameter.name] = symbol;
      if (&slots == &made.parameters)
        decodeParameterLoad(*this, atLine(builder.line.ptx), inFrame, parameter.type, named(parameter.name), 0);
      return;
    }
    scope().symbols[parameter.name] = symbol;
  };
  if (declaration.isKernel) {
    for (const ParameterDecl& parameter : declaration.parameters) {
      Symbol symbol{Symbol::Kind::kernelParameter, parameter.type};
      symbol.offset = parameter.offset;
      symbol.bytes = parameter.bytes;
      scope().symbols[parameter.name] = symbol;
    }
    return;
  }
  for (const ParameterDecl& parameter : declaration.parameters) add(parameter, made.parameters);
  for (const ParameterDecl& parameter : declaration.results) add(parameter, made.results);
  for (const ParameterDecl& parameter : declaration.parameters) copyParameter(parameter);
}

// "If the address of a device function parameter is moved to a register, the parameter will be copied onto the stack and the address will
// be in the local state space" (PTX ISA, mov). This is so if the name occurs anywhere but after a bracket.
void Decoder::copyParameter(const ParameterDecl& parameter) {
  if (parameter.space != Space::param || !takesAddress(declaration.body, parameter.name)) return;
  Symbol& symbol = scope().symbols[parameter.name];
  const uint64_t at = (uint64_t{localTop} + parameter.align - 1) / parameter.align * parameter.align;
  localTop = static_cast<uint32_t>(at + rowsOf(parameter.bytes) * 4);
  symbol.local = at;
  const Operand word = named("%word of a parameter"), copy = named("%copy of a parameter");
  scope().symbols[word.name] = {Symbol::Kind::reg, Type::b32, builder.reg(4)};
  scope().symbols[copy.name] = {Symbol::Kind::local, Type::b32, {}, at};
  Statement store = atLine(builder.line.ptx);
  store.parts = {"st", "local", "b32"};
  store.operands = {copy, word};
  store.operands[0].kind = Operand::Kind::memory;
  const Symbol from = scope().symbols[parameter.name];
  for (uint32_t offset = 0; offset < parameter.bytes; offset += 4) {
    decodeParameterLoad(*this, store, from, Type::b32, word, offset);
    store.operands[0].offset = offset;
    findDecode("st")->decode(*this, store);
  }
}

// Copies results that are registers to the slots where the caller reads them.
void Decoder::results() {
  for (size_t i = 0; i < declaration.results.size(); ++i) {
    const ParameterDecl& result = declaration.results[i];
    if (result.space != Space::reg) continue;
    Symbol inFrame{Symbol::Kind::parameter, result.type};
    inFrame.offset = static_cast<uint64_t>(made.results[i].offset);
    inFrame.bytes = result.bytes;
    decodeParameterStore(*this, atLine(builder.line.ptx), inFrame, result.type, named(result.name), 0);
  }
}

}  // namespace vgpu::emulator
