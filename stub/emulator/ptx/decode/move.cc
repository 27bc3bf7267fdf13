// mov with its packing and unpacking forms, selp, cvta, isspacep, alloca and the stack instructions.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/decode/linker.h"
#include "stub/emulator/ptx/run/special.h"

namespace vgpu::emulator {
namespace {

Type typeOf(Decoder& decoder, const Statement& statement) {
  const auto type = findType(statement.last());
  if (!type) decoder.unsupported(statement);
  return *type;
}

std::string bitsName(std::string_view family, uint32_t bits) {
  return std::string(family) + ".b" + std::to_string(bits);
}

// Concatenates `count` values of `bits` each, lowest first.
Value pack(Decoder& decoder, const Value* values, size_t count, uint32_t bits) {
  if (count == 1) return values[0];
  std::vector<Value> pairs;
  for (size_t i = 0; i < count; i += 2) {
    const Value joined = decoder.build().reg(bits * 2 <= 32 ? 4 : bits * 2 / 8);
    decoder.build().lane(bitsName("pack", bits * 2), joined, {values[i], values[i + 1]});
    pairs.push_back(joined);
  }
  return pack(decoder, pairs.data(), pairs.size(), bits * 2);
}

void unpack(Decoder& decoder, Value value, uint32_t bits, const Operand* targets, size_t count) {
  const uint32_t half = bits / 2;
  const uint32_t halfBytes = half <= 32 ? 4 : half / 8;
  if (count == 2) {
    // Both halves are read before either is written, because a target may be the source.
    const Value lo = decoder.build().reg(halfBytes), hi = decoder.build().reg(halfBytes);
    const bool wantsLo = targets[0].name != "_", wantsHi = targets[1].name != "_";
    if (wantsLo && wantsHi) {
      decoder.build().lane(bitsName("lo", bits), lo, {value});
      decoder.build().lane(bitsName("hi", bits), hi, {value});
      decoder.build().move(decoder.target(targets[0], halfBytes), lo);
      decoder.build().move(decoder.target(targets[1], halfBytes), hi);
    } else if (wantsLo) {
      decoder.build().lane(bitsName("lo", bits), decoder.target(targets[0], halfBytes), {value});
    } else if (wantsHi) {
      decoder.build().lane(bitsName("hi", bits), decoder.target(targets[1], halfBytes), {value});
    }
    return;
  }
  const Value lo = decoder.build().reg(halfBytes), hi = decoder.build().reg(halfBytes);
  decoder.build().lane(bitsName("lo", bits), lo, {value});
  decoder.build().lane(bitsName("hi", bits), hi, {value});
  unpack(decoder, lo, half, targets, count / 2);
  unpack(decoder, hi, half, targets + count / 2, count / 2);
}

bool divides(Decoder& decoder, const Statement& statement, size_t count, uint32_t bits) {
  const bool fits = (count == 2 || count == 4 || count == 8) && bits / count >= 8;
  if (!fits) decoder.unsupported(statement);
  return fits;
}

// mov.v2, mov.v4: all elements are read before any is written, because they may be the same registers.
void moveVector(Decoder& decoder, const Statement& statement, Type type) {
  const Operand &to = statement.operands[0], &from = statement.operands[1];
  const size_t count = statement.has("v2") ? 2 : 4;
  const uint32_t bytes = registerBytes(type);
  std::vector<Value> values;
  // A special register such as %tid is a vector too.
  if (from.kind == Operand::Kind::name && count == 4)
    for (const char letter : {'x', 'y', 'z', 'w'})
      if (const Value part = readSpecial(decoder, std::string(from.name) + "." + letter)) values.push_back(part);
  if (to.parts.size() != count || from.parts.size() + values.size() != count)
    decoder.invalid(statement.line, "two vectors of the same length are needed here");
  for (const Operand& part : from.parts) {
    values.push_back(decoder.build().reg(bytes));
    decoder.build().move(values.back(), decoder.source(part, bytes));
  }
  for (size_t i = 0; i < count; ++i) decoder.build().move(decoder.target(to.parts[i], bytes, isSigned(type)), values[i]);
}

void move(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 2);
  const Operand &to = statement.operands[0], &from = statement.operands[1];
  const Type type = typeOf(decoder, statement);
  if (statement.has("v2") || statement.has("v4")) return moveVector(decoder, statement, type);
  if (type == Type::pred) {
    decoder.build().move(decoder.target(to, 4), decoder.predicate(from));
    return;
  }
  const uint32_t bits = sizeOf(type) * 8, bytes = registerBytes(type);
  if (from.kind == Operand::Kind::vector && divides(decoder, statement, from.parts.size(), bits)) {
    std::vector<Value> values;
    const uint32_t each = bits / static_cast<uint32_t>(from.parts.size());
    for (const Operand& part : from.parts) values.push_back(decoder.source(part, each <= 32 ? 4 : 8));
    decoder.build().move(decoder.target(to, bytes), pack(decoder, values.data(), values.size(), each));
  } else if (to.kind == Operand::Kind::vector && divides(decoder, statement, to.parts.size(), bits)) {
    unpack(decoder, decoder.source(from, bytes), bits, to.parts.data(), to.parts.size());
  } else {
    const Literal literal = type == Type::f32 ? Literal::f32 : type == Type::f64 ? Literal::f64 : Literal::whole;
    const Value value = decoder.source(from, bytes, literal);
    decoder.build().move(decoder.target(to, bytes, isSigned(type)), value);
  }
}

void select(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 4, 4);
  const Type type = typeOf(decoder, statement);
  const uint32_t bytes = registerBytes(type);
  const Literal literal = type == Type::f32 ? Literal::f32 : type == Type::f64 ? Literal::f64 : Literal::whole;
  const Value a = decoder.source(statement.operands[1], bytes, literal),
              b = decoder.source(statement.operands[2], bytes, literal);
  const Value p = decoder.predicate(statement.operands[3]);
  decoder.build().lane(bitsName("selp", bytes * 8), decoder.target(statement.operands[0], bytes), {a, b, p});
}

// slct: a if c >= 0, else b; b also for a NaN.
void selectBySign(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 4, 4);
  if (statement.parts.size() < 3) decoder.unsupported(statement);
  const auto type = findType(statement.parts[statement.parts.size() - 2]);
  const bool byFloat = statement.last() == "f32";
  if (!type || (!byFloat && statement.last() != "s32")) decoder.unsupported(statement);
  const uint32_t bytes = registerBytes(*type);
  Value c = decoder.source(statement.operands[3], 4, byFloat ? Literal::f32 : Literal::whole);
  const Value p = decoder.build().reg(4);
  if (statement.has("ftz")) {
    const Value flushed = decoder.build().reg(4);
    decoder.build().lane("flush.f32", flushed, {c});
    c = flushed;
  }
  decoder.build().lane(byFloat ? "setp.ge.f32" : "setp.ge.s32", p, {c, decoder.build().constant(4, 0)});
  const Value a = decoder.source(statement.operands[1], bytes), b = decoder.source(statement.operands[2], bytes);
  decoder.build().lane(bitsName("selp", bytes * 8), decoder.target(statement.operands[0], bytes), {a, b, p});
}

uint64_t windowFor(std::string_view space) {
  if (space.starts_with("shared")) return sharedWindow;
  if (space == "local") return localWindow;
  if (space.starts_with("param")) return paramWindow;
  return 0;
}

void convertAddress(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 2);
  const bool toSpace = statement.has("to");
  if (statement.parts.size() < (toSpace ? 4 : 3)) decoder.unsupported(statement);
  const std::string_view space = statement.parts[toSpace ? 2 : 1];
  if (statement.last() != "u64") decoder.unsupported(statement);
  const Value from = decoder.source(statement.operands[1], 8);
  const Value to = decoder.target(statement.operands[0], 8);
  const uint64_t window = windowFor(space);
  if (window == 0)
    decoder.build().move(to, from);
  else if (toSpace)
    decoder.build().lane("and.b64", to, {from, decoder.build().constant(8, (uint64_t{1} << windowShift) - 1)});
  else
    decoder.build().lane("or.b64", to, {from, decoder.build().constant(8, window)});
}

// Extends 32 bits to 64, or truncates 64 to 32.
Value widened(Decoder& decoder, const Operand& operand) {
  const Value wide = decoder.build().reg(8);
  decoder.build().lane("extend.u32", wide, {decoder.source(operand, 4)});
  return wide;
}
// Writes a stack address to a register of the width in the instruction's type.
void putAddress(Decoder& decoder, const Statement& statement, Value address) {
  if (statement.last() == "u32")
    decoder.build().lane("lo.b64", decoder.target(statement.operands[0], 4), {address});
  else
    decoder.build().move(decoder.target(statement.operands[0], 8), address);
}

void isSpace(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 2);
  const std::string_view space = statement.parts.size() > 1 ? statement.parts[1] : "";
  const Handler handler = space == "global"             ? isGlobal
                          : space == "shared::cluster"  ? isInCluster
                          : space.starts_with("shared") ? isShared
                          : space == "local"            ? isLocal
                          : space == "const"            ? isConstant
                          : space.starts_with("param")  ? isParam
                                                        : nullptr;
  if (!handler) decoder.unsupported(statement);
  const bool isNarrow = decoder.findRegister(statement.operands[1]) && decoder.findRegister(statement.operands[1])->value.bytes == 4;
  const Value address = isNarrow ? widened(decoder, statement.operands[1]) : decoder.source(statement.operands[1], 8);
  decoder.build().add(handler, {decoder.target(statement.operands[0], 4)}, {address});
}

void allocate(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 3);
  const Operand* alignment = statement.operands.size() == 3 ? &statement.operands[2] : nullptr;
  const uint64_t align = alignment ? alignment->whole : 8;
  if (alignment && (alignment->kind != Operand::Kind::number || align == 0 || align > 4096 || (align & (align - 1))))
    decoder.unsupported(statement);
  const Operand& size = statement.operands[1];
  const Value bytes = statement.last() == "u32" ? widened(decoder, size) : decoder.source(size, 8);
  const Value address = decoder.build().reg(8);
  decoder.build().add(allocateLocal, {address}, {bytes}).imm = std::max<uint64_t>(align, 8);
  putAddress(decoder, statement, address);
}

void stackSave(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 1, 1);
  const Value top = decoder.build().reg(8);
  decoder.build().add(saveStack, {top}, {});
  putAddress(decoder, statement, top);
}
void stackRestore(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 1, 1);
  const Operand& top = statement.operands[0];
  decoder.build().add(restoreStack, {}, {statement.last() == "u32" ? widened(decoder, top) : decoder.source(top, 8)});
}

constexpr DecodeRow decodeRows[] = {
    {"mov", move},         {"selp", select},     {"slct", selectBySign},   {"cvta", convertAddress},
    {"isspacep", isSpace}, {"alloca", allocate}, {"stacksave", stackSave}, {"stackrestore", stackRestore},
};

}  // namespace

std::span<const DecodeRow> moveDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
