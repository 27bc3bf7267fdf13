// Arithmetic that needs more than one row of the registry: carries, and instructions with several names.
#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

std::string unsignedName(Decoder& decoder, const Statement& statement) {
  const std::string_view type = statement.last();
  if (type.ends_with("32")) return "u32";
  if (type.ends_with("64")) return "u64";
  decoder.unsupported(statement);
}

// target = a (+|-) b (+|-) carry-in, and the carry-out if requested. The flag is written last, because the sum reads it.
void sumWithCarry(Decoder& decoder, const Statement& statement, bool subtract, bool readsCarry, Value a, Value b) {
  const std::string type = unsignedName(decoder, statement);
  Builder& build = decoder.build();
  const Value in = readsCarry ? decoder.carry() : build.constant(4, subtract ? 1 : 0);
  Value out;
  if (statement.has("cc")) {
    out = build.reg(4);
    build.lane((subtract ? "carry.sub." : "carry.add.") + type, out, {a, b, in});
  }
  build.lane((subtract ? "subc." : "addc.") + type, decoder.target(statement.operands[0], a.bytes), {a, b, in});
  if (out) build.move(decoder.carry(), out);
}

template <bool Subtract, bool ReadsCarry>
void add(Decoder& decoder, const Statement& statement) {
  if (!ReadsCarry && !statement.has("cc")) {
    if (!decodeLane(decoder, statement)) decoder.unsupported(statement);
    return;
  }
  decoder.operandCount(statement, 3, 3);
  const uint32_t bytes = statement.last().ends_with("64") ? 8 : 4;
  sumWithCarry(decoder, statement, Subtract, ReadsCarry, decoder.source(statement.operands[1], bytes),
               decoder.source(statement.operands[2], bytes));
}

template <bool ReadsCarry>
void multiplyAdd(Decoder& decoder, const Statement& statement) {
  if (!ReadsCarry && !statement.has("cc")) {
    if (!decodeLane(decoder, statement)) decoder.unsupported(statement);
    return;
  }
  decoder.operandCount(statement, 4, 4);
  const std::string_view half = statement.parts.size() > 1 ? statement.parts[1] : "";
  if (half != "lo" && half != "hi") decoder.unsupported(statement);
  const uint32_t bytes = statement.last().ends_with("64") ? 8 : 4;
  const Value product = decoder.build().reg(bytes);
  const Value a = decoder.source(statement.operands[1], bytes), b = decoder.source(statement.operands[2], bytes);
  decoder.build().lane("mul." + std::string(half) + "." + std::string(statement.last()), product, {a, b});
  sumWithCarry(decoder, statement, false, ReadsCarry, product, decoder.source(statement.operands[3], bytes));
}

// shl and the and/or/xor/not family: predicates are registers of all ones or zeros, and any type of the width is accepted.
void logic(Decoder& decoder, const Statement& statement) {
  Statement plain = statement;
  if (statement.last() == "pred") {
    plain.parts.back() = "b32";
    for (Operand& operand : plain.operands)
      if (operand.kind == Operand::Kind::number) operand.whole = operand.whole ? ~uint64_t{0} : 0;
  }
  if (!decodeLane(decoder, plain)) decoder.unsupported(statement);
}

// lop3{.BoolOp}.b32 d|p, a, b, c, table, q
void lop3(Decoder& decoder, const Statement& statement) {
  const bool combines = statement.parts.size() == 3;
  decoder.operandCount(statement, combines ? 6 : 5, combines ? 6 : 5);
  if (!combines) return logic(decoder, statement);
  const std::string_view op = statement.parts[1];
  const Operand& pair = statement.operands[0];
  if ((op != "or" && op != "and") || pair.kind != Operand::Kind::pair) decoder.unsupported(statement);
  Builder& build = decoder.build();
  Value in[4];
  for (int i = 0; i < 4; ++i) in[i] = decoder.source(statement.operands[i + 1], 4);
  const Value q = decoder.predicate(statement.operands[5]);
  const Value result = build.reg(4), isSet = build.reg(4);
  build.lane("lop3.b32", result, {in[0], in[1], in[2], in[3]});
  build.lane("setp.ne.b32", isSet, {result, build.constant(4, 0)});
  build.lane(std::string(op) + ".b32", decoder.target(pair.parts[1], 4), {isSet, q});
  build.move(decoder.target(pair.parts[0], 4), result);
}

// If signedness does not matter, the registry has the row under only one type of the width.
template <char As>
void retyped(Decoder& decoder, const Statement& statement) {
  if (decodeLane(decoder, statement)) return;
  Statement plain = statement;
  if (statement.last().size() < 2) decoder.unsupported(statement);
  const std::string type = std::string(1, As) + std::string(statement.last().substr(1));
  plain.parts.back() = type;
  if (!decodeLane(decoder, plain)) decoder.unsupported(statement);
}

// min.s32.relu is min.relu.s32: nvcc's headers write the type first.
void leastOrMost(Decoder& decoder, const Statement& statement) {
  Statement plain = statement;
  if (statement.parts.size() > 2 && statement.last() == "relu") std::swap(plain.parts.back(), *(plain.parts.end() - 2));
  if (!decodeLane(decoder, plain)) decoder.unsupported(statement);
}

constexpr DecodeRow decodeRows[] = {
    {"min", leastOrMost},
    {"max", leastOrMost},
    {"add", add<false, false>},
    {"sub", add<true, false>},
    {"addc", add<false, true>},
    {"subc", add<true, true>},
    {"mad", multiplyAdd<false>},
    {"madc", multiplyAdd<true>},
    {"and", logic},
    {"or", logic},
    {"xor", logic},
    {"not", logic},
    {"shl", retyped<'b'>},
    {"shr", retyped<'u'>},
    {"lop3", lop3},
};

}  // namespace

std::span<const DecodeRow> arithmeticDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
