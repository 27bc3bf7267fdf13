// setp, set, testp: a comparison, optionally combined with a predicate, and with its complement as second result.
#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

bool isCombiner(std::string_view part) { return part == "and" || part == "or" || part == "xor"; }

struct Comparison {
  std::string name;  // of the row
  std::string_view combine;
  bool ftz = false;
  bool packed = false;  // f16x2, bf16x2: two comparisons
};

Comparison parse(Decoder& decoder, const Statement& statement, std::string_view type) {
  Comparison found;
  if (statement.parts.size() < 3) decoder.unsupported(statement);
  for (size_t i = 2; i + 1 < statement.parts.size(); ++i) {
    const std::string_view part = statement.parts[i];
    if (isCombiner(part))
      found.combine = part;
    else if (part == "ftz")
      found.ftz = true;
    else if (statement.parts[0] == "setp" || i + 2 < statement.parts.size())
      decoder.unsupported(statement);
  }
  found.packed = type.ends_with("x2");
  found.name = "setp." + std::string(statement.parts[1]) + "." +
               std::string(found.packed ? type.substr(0, type.size() - 2) : type);
  return found;
}

Value flushed(Decoder& decoder, const Comparison& comparison, const std::string& type, Value value) {
  if (!comparison.ftz || type == "f64") return value;
  const Value result = decoder.build().reg(4);
  decoder.build().lane("flush." + type, result, {value});
  return result;
}

// p = (a cmp b) combine c
Value compare(Decoder& decoder, const Statement& statement, const Comparison& comparison, Value a, Value b,
              const Operand* c, bool negateResult = false) {
  const Row* row = registry().find(comparison.name);
  if (!row) decoder.unsupported(statement);
  const std::string type = comparison.name.substr(comparison.name.rfind('.') + 1);
  const Value in[] = {flushed(decoder, comparison, type, a), flushed(decoder, comparison, type, b)};
  Builder& build = decoder.build();
  Value result = build.reg(4);
  build.row(*row, result, in);
  if (negateResult) {
    const Value negated = build.reg(4);
    build.lane("not.b32", negated, {result});
    result = negated;
  }
  if (comparison.combine.empty()) return result;
  if (!c) decoder.invalid(statement.line, "a predicate to combine with is missing");
  const Value combined = build.reg(4);
  build.lane(std::string(comparison.combine) + ".b32", combined, {result, decoder.predicate(*c)});
  return combined;
}

struct Halves {
  Value lo, hi;
};
Halves split(Decoder& decoder, Value pair) {
  Builder& build = decoder.build();
  const Halves halves{build.reg(4), build.reg(4)};
  build.lane("lo.b32", halves.lo, {pair});
  build.lane("hi.b32", halves.hi, {pair});
  return halves;
}

void setPredicate(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 3, 4);
  const Comparison comparison = parse(decoder, statement, statement.last());
  const Row* row = registry().find(comparison.name);
  if (!row) decoder.unsupported(statement);
  const Operand& to = statement.operands[0];
  const Operand* c = statement.operands.size() > 3 ? &statement.operands[3] : nullptr;
  const Value a = decoder.source(statement.operands[1], row->in[0]),
              b = decoder.source(statement.operands[2], row->in[1]);
  Builder& build = decoder.build();
  if (comparison.packed) {
    if (to.kind != Operand::Kind::pair) decoder.invalid(statement.line, "two predicates are needed");
    const Halves x = split(decoder, a), y = split(decoder, b);
    const Value lo = compare(decoder, statement, comparison, x.lo, y.lo, c),
                hi = compare(decoder, statement, comparison, x.hi, y.hi, c);
    build.move(decoder.target(to.parts[0], 4), lo);
    build.move(decoder.target(to.parts[1], 4), hi);
    return;
  }
  if (to.kind != Operand::Kind::pair && comparison.combine.empty() && !comparison.ftz) {
    const Value in[] = {a, b};
    build.row(*row, decoder.target(to, 4), in);
    return;
  }
  const Value p = compare(decoder, statement, comparison, a, b, c);
  if (to.kind != Operand::Kind::pair) {
    build.move(decoder.target(to, 4), p);
    return;
  }
  // The second result is the complement of the comparison, combined in the same way.
  const Value q = compare(decoder, statement, comparison, a, b, c, true);
  build.move(decoder.target(to.parts[0], 4), p);
  build.move(decoder.target(to.parts[1], 4), q);
}

// The value that `set` writes for true, for each type.
uint64_t trueOf(Decoder& decoder, const Statement& statement, std::string_view type) {
  if (type == "u32" || type == "s32") return 0xffffffff;
  if (type == "u16" || type == "s16") return 0xffff;
  if (type == "f32") return 0x3f800000;
  if (type == "f16" || type == "f16x2") return 0x3c00;
  if (type == "bf16" || type == "bf16x2") return 0x3f80;
  decoder.unsupported(statement);
}

void set(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 3, 4);
  if (statement.parts.size() < 4) decoder.unsupported(statement);
  const Comparison comparison = parse(decoder, statement, statement.last());
  const std::string_view to = statement.parts[statement.parts.size() - 2];
  const Row* row = registry().find(comparison.name);
  if (!row) decoder.unsupported(statement);
  const Operand* c = statement.operands.size() > 3 ? &statement.operands[3] : nullptr;
  const Value a = decoder.source(statement.operands[1], row->in[0]),
              b = decoder.source(statement.operands[2], row->in[1]);
  Builder& build = decoder.build();
  const auto choose = [&](Value p, uint64_t yes) {
    const Value chosen = build.reg(4);
    build.lane("selp.b32", chosen, {build.constant(4, yes), build.constant(4, 0), p});
    return chosen;
  };
  if (!comparison.packed) {
    const Value chosen = choose(compare(decoder, statement, comparison, a, b, c), trueOf(decoder, statement, to));
    build.move(decoder.target(statement.operands[0], 4), chosen);
    return;
  }
  const Halves x = split(decoder, a), y = split(decoder, b);
  const uint64_t yes = to == "u32" || to == "s32" ? 0xffff : trueOf(decoder, statement, to);
  const Value lo = choose(compare(decoder, statement, comparison, x.lo, y.lo, c), yes);
  const Value hi = choose(compare(decoder, statement, comparison, x.hi, y.hi, c), yes);
  build.lane("pack.b32", decoder.target(statement.operands[0], 4), {lo, hi});
}

constexpr DecodeRow decodeRows[] = {{"setp", setPredicate}, {"set", set}};

}  // namespace

std::span<const DecodeRow> compareDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
