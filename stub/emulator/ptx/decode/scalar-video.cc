// Scalar video instructions: combine a byte, a half or the whole of two registers, then combine the result with a third one or insert it
// into a part of that. vadd.dtype.atype.btype{.sat}{.op2} d{.dsel}, a{.asel}, b{.bsel}{, c} and similar ones, vset, vmad.
//
// In the PTX ISA, parts are extended to 33 bits, and results have 34 bits until they are clamped. Here both have 64.
#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

// A byte, a half, or the whole of a register.
struct Selector {
  uint32_t bits = 32, shift = 0;
  bool isWhole() const { return bits == 32; }
};

class ScalarVideo {
 public:
  ScalarVideo(Decoder& decoder, const Statement& statement) : decoder(decoder), statement(statement) {
    name = statement.parts[0].substr(1);
    std::vector<std::string_view> types;
    for (size_t i = 1; i < statement.parts.size(); ++i) {
      const std::string_view part = statement.parts[i];
      if (part == "u32" || part == "s32")
        types.push_back(part);
      else if (part == "sat" && name != "set")
        saturates = true;
      else if ((part == "add" || part == "min" || part == "max") && name != "mad" && second.empty())
        second = part;
      else if ((isShift() && (part == "clamp" || part == "wrap")) || (name == "set" && isComparison(part)))
        how = part;
      else if (name == "mad" && (part == "shr7" || part == "shr15"))
        scale = part == "shr7" ? 7 : 15;
      else if (name == "mad" && part == "po")
        plusOne = true;
      else
        decoder.unsupported(statement);
    }
    if (name == "set") types.insert(types.begin(), "u32");
    if (types.size() != 3 || how.empty() == (isShift() || name == "set")) decoder.unsupported(statement);
    if (isShift() && types[2] != "u32") decoder.unsupported(statement);
    isSigned = types[0] == "s32", signedA = types[1] == "s32", signedB = types[2] == "s32";
  }

  void run() {
    decoder.operandCount(statement, 3, 4);
    Operand to = statement.operands[0], first = statement.operands[1], other = statement.operands[2];
    const Selector into = selectorOf(to), fromA = selectorOf(first), fromB = selectorOf(other);
    const bool combines = !second.empty() || !into.isWhole() || name == "mad";
    decoder.operandCount(statement, combines ? 4 : 3, 4);  // a third operand without a use is ignored
    if (!into.isWhole() && (!second.empty() || name == "mad")) decoder.unsupported(statement);
    const bool negates = first.minus != other.minus;
    if (name == "mad") first.minus = other.minus = false;
    const Value a = part(first, fromA, signedA), b = part(other, fromB, signedB);
    Value result;
    if (name == "mad") {
      result = multiplied(a, b, negates);
    } else {
      const Value whole = saturated(combined(a, b), into.bits);
      result = lane("lo.b64", 4, {whole});
    }
    if (!second.empty()) {
      const Value c = decoder.source(statement.operands[3], 4);
      result = lane(std::string(second) + (isSigned ? ".s32" : ".u32"), 4, {result, c});
    } else if (!into.isWhole()) {
      const Value c = decoder.source(statement.operands[3], 4);
      result = lane("bfi.b32", 4, {result, c, decoder.build().constant(4, into.shift), decoder.build().constant(4, into.bits)});
    }
    decoder.build().move(decoder.target(to, 4), result);
  }

 private:
  bool isShift() const { return name == "shl" || name == "shr"; }
  static bool isComparison(std::string_view part) {
    return part == "eq" || part == "ne" || part == "lt" || part == "le" || part == "gt" || part == "ge";
  }

  Value wide(int64_t value) { return decoder.build().constant(8, static_cast<uint64_t>(value)); }
  Value lane(const std::string& row, uint32_t bytes, std::initializer_list<Value> ins) {
    const Value out = decoder.build().reg(bytes);
    decoder.build().lane(row, out, ins);
    return out;
  }

  // "%r1.h0": parses the selector and removes it from the operand's name.
  Selector selectorOf(Operand& operand) {
    const size_t dot = operand.kind == Operand::Kind::name ? operand.name.rfind('.') : std::string_view::npos;
    if (dot == std::string_view::npos || decoder.find(operand.name)) return {};
    const std::string_view text = operand.name.substr(dot + 1);
    const uint32_t bits = text[0] == 'b' ? 8 : 16;
    if (text.size() != 2 || (text[0] != 'b' && text[0] != 'h') || text[1] < '0' || text[1] >= static_cast<char>('0' + 32 / bits))
      decoder.unsupported(statement);
    operand.name = operand.name.substr(0, dot);
    return {bits, bits * static_cast<uint32_t>(text[1] - '0')};
  }

  Value part(const Operand& operand, const Selector& from, bool withSign) {
    Value value = decoder.source(operand, 4);
    if (!from.isWhole())
      value = lane(withSign ? "bfe.s32" : "bfe.u32", 4,
                   {value, decoder.build().constant(4, from.shift), decoder.build().constant(4, from.bits)});
    return extended(value, withSign);
  }
  Value extended(Value value, bool withSign) { return lane(withSign ? "extend.s32" : "extend.u32", 8, {value}); }

  Value combined(Value a, Value b) {
    if (isShift()) return shifted(a, b);
    if (name == "absdiff") return lane("abs.s64", 8, {lane("sub.s64", 8, {a, b})});
    if (name != "set") return lane(std::string(name) + ".s64", 8, {a, b});
    const Value holds = lane("setp." + std::string(how) + ".s64", 4, {a, b});
    return extended(lane("selp.b32", 4, {decoder.build().constant(4, 1), decoder.build().constant(4, 0), holds}), false);
  }

  // Shifts by at most 32. A left shift is the only operation whose result needs more than 34 bits.
  Value shifted(Value value, Value by) {
    const Value count = lane("lo.b64", 4, {by});
    const bool wraps = how == "wrap";
    const Value amount = lane(wraps ? "and.b32" : "min.u32", 4, {count, decoder.build().constant(4, wraps ? 31 : 32)});
    if (name == "shr") return lane("shr.s64", 8, {value, amount});
    const Value left = decoder.build().constant(4, 30);
    return lane("shr.s64", 8, {lane("shl.b64", 8, {lane("shl.b64", 8, {value, amount}), left}), left});
  }

  Value saturated(Value value, uint32_t bits) {
    if (!saturates) return value;
    const int64_t most = (int64_t{1} << (bits - isSigned)) - 1, least = isSigned ? -most - 1 : 0;
    return lane("max.s64", 8, {lane("min.s64", 8, {value, wide(most)}), wide(least)});
  }

  // a * b + c, with the product or c negated, or plus one; the types of a and b and the negations determine whether the result is signed.
  Value multiplied(Value a, Value b, bool negates) {
    Operand third = statement.operands[3];
    const bool subtracts = third.minus;
    third.minus = false;
    if (negates + subtracts + plusOne > 1) decoder.invalid(statement.line, "vmad with more than one negated operand, or with .po");
    isSigned = signedA || signedB || negates || subtracts;
    Value product = lane("mul.lo.u64", 8, {a, b});
    // An unsigned 64-bit product with the highest bit set exceeds every limit.
    if (saturates && isSigned && !signedA && !signedB) product = lane("min.u64", 8, {product, wide(int64_t{1} << 62)});
    const Value c = extended(decoder.source(third, 4), isSigned);
    Value sum = negates     ? lane("sub.s64", 8, {c, product})
                : subtracts ? lane("sub.s64", 8, {product, c})
                            : lane("add.s64", 8, {product, c});
    if (plusOne) sum = lane("add.s64", 8, {sum, wide(1)});
    if (scale) sum = lane(isSigned ? "shr.s64" : "shr.u64", 8, {sum, decoder.build().constant(4, scale)});
    if (saturates) sum = isSigned ? saturated(sum, 32) : lane("min.u64", 8, {sum, wide(0xffffffff)});
    return lane("lo.b64", 4, {sum});
  }

  Decoder& decoder;
  const Statement& statement;
  std::string_view name;         // without the initial `v`
  std::string_view second, how;  // .add, .min or .max; .clamp or .wrap, or a comparison
  bool saturates = false, plusOne = false, isSigned = false, signedA = false, signedB = false;
  uint32_t scale = 0;
};

void scalarVideo(Decoder& decoder, const Statement& statement) { ScalarVideo(decoder, statement).run(); }

constexpr DecodeRow decodeRows[] = {
    {"vadd", scalarVideo}, {"vsub", scalarVideo}, {"vabsdiff", scalarVideo}, {"vmin", scalarVideo}, {"vmax", scalarVideo},
    {"vshl", scalarVideo}, {"vshr", scalarVideo}, {"vset", scalarVideo},     {"vmad", scalarVideo},
};

}  // namespace

std::span<const DecodeRow> scalarVideoDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
