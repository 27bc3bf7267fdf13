// cvt. The registry has every conversion to and from the widest formats; the others go through an exact intermediate format.
#include <algorithm>

#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

struct Conversion {
  std::string_view to, from, rounding;
  bool ftz = false, sat = false, relu = false, finite = false;
};

bool isRounding(std::string_view part) {
  for (std::string_view known : {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"})
    if (part == known) return true;
  return false;
}

bool isWhole(std::string_view type) { return type.starts_with('u') || type.starts_with('s'); }
bool isHalf(std::string_view type) { return type == "f16" || type == "bf16"; }

Conversion parse(Decoder& decoder, const Statement& statement) {
  if (statement.parts.size() < 3) decoder.unsupported(statement);
  Conversion found{statement.parts[statement.parts.size() - 2], statement.last()};
  for (size_t i = 1; i + 2 < statement.parts.size(); ++i) {
    const std::string_view part = statement.parts[i];
    if (isRounding(part))
      found.rounding = part;
    else if (part == "ftz")
      found.ftz = true;
    else if (part == "sat")
      found.sat = true;
    else if (part == "relu")
      found.relu = true;
    else if (part == "satfinite")
      found.finite = true;
    else
      decoder.unsupported(statement);
  }
  if (!findType(found.to) || !findType(found.from)) decoder.unsupported(statement);
  if (found.rounding.empty() && isHalf(found.to) && isHalf(found.from)) found.rounding = "rn";
  return found;
}

std::string rowName(std::string_view rounding, std::string_view to, std::string_view from) {
  std::string name = "cvt.";
  if (!rounding.empty()) (name += rounding) += '.';
  return ((name += to) += '.') += from;
}

class Converter {
 public:
  Converter(Decoder& decoder, const Statement& statement)
      : decoder(decoder), statement(statement), wanted(parse(decoder, statement)) {}

  void run() {
    if (wanted.to.ends_with("x2")) return pair();
    decoder.operandCount(statement, 2, 2);
    const Value result = finish(convert(source(statement.operands[1], wanted.from), wanted.to, wanted.from), wanted.to);
    decoder.build().move(decoder.target(statement.operands[0], result.bytes, wanted.to.starts_with('s')), result);
  }

 private:
  // cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
  void pair() {
    decoder.operandCount(statement, 3, 3);
    const std::string_view half = wanted.to.substr(0, wanted.to.size() - 2);
    if (!isHalf(half) || wanted.from != "f32") decoder.unsupported(statement);
    const Value hi = finish(convert(source(statement.operands[1], "f32"), half, "f32"), half);
    const Value lo = finish(convert(source(statement.operands[2], "f32"), half, "f32"), half);
    decoder.build().lane("pack.b32", decoder.target(statement.operands[0], 4), {lo, hi});
  }

  Value source(const Operand& operand, std::string_view typeName) {
    const auto type = findType(typeName);
    if (!type) decoder.unsupported(statement);
    const Literal literal = *type == Type::f32 ? Literal::f32 : *type == Type::f64 ? Literal::f64 : Literal::whole;
    const Value value = decoder.source(operand, registerBytes(*type), literal);
    // Hardware does not flush operands converted to f16, which shows with directed rounding.
    return wanted.ftz && typeName == "f32" && wanted.to != "f16" ? apply("flush.f32", value) : value;
  }

  Value finish(Value value, std::string_view to) {
    if (wanted.ftz && to == "f32") value = apply(wanted.from == "bf16" ? "flush.f32" : "flush.result.f32", value);
    if (wanted.finite) value = apply("satfinite." + std::string(to), value);
    if (wanted.relu) value = apply("relu." + std::string(to), value);
    if (wanted.sat && !isWhole(to)) value = apply("saturate." + std::string(to), value);
    return value;
  }

  Value apply(const std::string& name, Value in) {
    const Row* row = registry().find(name);
    if (!row) decoder.unsupported(statement);
    const Value out = decoder.build().reg(row->out.registerBytes);
    decoder.build().row(*row, out, &in);
    return out;
  }

  Value convert(Value value, std::string_view to, std::string_view from) {
    if (isWhole(to) && isWhole(from))
      return apply((wanted.sat ? "cvt.sat." : "cvt.") + std::string(to) + "." + std::string(from), value);
    if (isHalf(from) && registry().find(rowName("", to, from))) return apply(rowName("", to, from), value);
    // Halves go through f32, which represents all of them exactly.
    if (isHalf(from)) return convert(apply(rowName("", "f32", from), value), to, "f32");
    if (isHalf(to) && wanted.rounding.size() == 3) {
      return apply(rowName("rn", to, "f32"), apply(rowName(wanted.rounding, "f32", "f32"), value));
    }
    if (isHalf(to) && isWhole(from)) return wholeToHalf(value, to, from);
    for (const std::string_view rounding : {wanted.rounding, std::string_view("rn"), std::string_view()}) {
      // Exact conversions have no rows for other roundings.
      const bool exact = isWhole(from) ? sizeOf(*findType(from)) <= (to == "f64" ? 4u : 2u) : false;
      if (rounding != wanted.rounding && wanted.rounding != "rn" && !exact) continue;
      if (const Row* row = registry().find(rowName(rounding, to, from))) {
        const Value out = decoder.build().reg(row->out.registerBytes);
        decoder.build().row(*row, out, &value);
        if (!wanted.ftz || from != "f64" || to != "f32" || rounding == "rz") return out;
        // Flushes what is subnormal after rounding to the same number of bits with an unlimited exponent.
        const Value flushed = decoder.build().reg(4);
        decoder.build().lane(rounding == "rn" ? "flush.nearest.cvt.f32" : "flush.away.cvt.f32", flushed, {out, value});
        return flushed;
      }
    }
    decoder.unsupported(statement);
  }

  // A double represents every integer of up to 32 bits exactly; 64-bit integers have rows of their own.
  Value wholeToHalf(Value value, std::string_view to, std::string_view from) {
    if (const Row* row = registry().find(rowName(wanted.rounding, to, from))) {
      const Value out = decoder.build().reg(row->out.registerBytes);
      decoder.build().row(*row, out, &value);
      return out;
    }
    if (sizeOf(*findType(from)) > 4) decoder.unsupported(statement);
    return apply(rowName(wanted.rounding, to, "f64"), apply(rowName("rn", "f64", from), value));
  }

  Decoder& decoder;
  const Statement& statement;
  Conversion wanted;
};

void convert(Decoder& decoder, const Statement& statement) {
  // cvt.pack.sat.type.s32 and the formats of 8 bits and less are different instructions with the same mnemonic: rows of the registry.
  const auto isSmallFloat = [](std::string_view part) {
    return part == "ue8m0x2" || (part.size() == 6 && part[0] == 'e' && part.ends_with("x2"));
  };
  if (statement.has("pack") || std::any_of(statement.parts.begin(), statement.parts.end(), isSmallFloat)) {
    if (!decodeLane(decoder, statement)) decoder.unsupported(statement);
    return;
  }
  Converter(decoder, statement).run();
}

constexpr DecodeRow decodeRows[] = {{"cvt", convert}};

}  // namespace

std::span<const DecodeRow> convertDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
