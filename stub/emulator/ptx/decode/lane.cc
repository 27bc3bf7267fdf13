// Instructions that are rows of the registry. A name is looked up as written, then without modifiers that change nothing here (`.rn` is the
// default; `.approx` and `.full` permit errors that our operations do not have), then with `.ftz`, `.sat` and `.relu` as separate
// operations before and after the row.
#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

struct Wrapping {
  bool ftz = false, sat = false, relu = false;
};

struct Found {
  const Row* row = nullptr;
  Wrapping wrap;
};

std::string joined(const std::vector<std::string_view>& parts) {
  std::string name;
  for (const std::string_view part : parts) {
    if (!name.empty()) name += '.';
    name += part;
  }
  return name;
}

bool take(std::vector<std::string_view>& parts, std::string_view part) {
  for (size_t i = 1; i + 1 < parts.size(); ++i)
    if (parts[i] == part) {
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
  return false;
}

const Row* findPlain(std::vector<std::string_view> parts) {
  if (const Row* row = registry().find(joined(parts))) return row;
  if (take(parts, "rn"))
    if (const Row* row = registry().find(joined(parts))) return row;
  const bool approximate = take(parts, "approx"), full = take(parts, "full");
  return approximate || full ? registry().find(joined(parts)) : nullptr;
}

Found findRow(std::vector<std::string_view> parts) {
  const std::string_view type = parts.back();
  const bool isFloat = type == "f32" || type == "f64" || type.starts_with("f16") || type.starts_with("bf16");
  if (parts[0] == "mad" && isFloat) parts[0] = "fma";
  Found found;
  if ((found.row = findPlain(parts)) || !isFloat) return found;
  found.wrap.sat = take(parts, "sat");
  found.wrap.relu = take(parts, "relu");
  if ((found.row = findPlain(parts))) return found;
  found.wrap.ftz = take(parts, "ftz");
  found.row = findPlain(parts);
  return found;
}

Value apply(Decoder& decoder, const std::string& name, Value in) {
  const Row* row = registry().find(name);
  if (!row) return {};
  const Value out = decoder.build().reg(row->out.registerBytes);
  decoder.build().row(*row, out, &in);
  return out;
}

// The row that flushes a result with knowledge of its operands, for operations whose rounding can turn a subnormal result into the least
// normal number. Not needed for sums of two, which are exact there, nor for approximations, where both results are allowed.
const Row* findFlush(const Statement& statement) {
  const std::string_view name = statement.parts[0] == "mad" ? "fma" : statement.parts[0];
  if (statement.last() != "f32" || statement.has("approx") || statement.has("full") || statement.has("rz")) return nullptr;
  const bool away = statement.has("rm") || statement.has("rp");
  return registry().find(std::string(away ? "flush.away." : "flush.nearest.") + std::string(name) + ".f32");
}

bool narrow(const Shape& shape) { return shape.literal == Literal::f32 || shape.bytes == 2 || shape.bytes == 4; }

// Whether the operations that `wrap` adds around the row (flush, saturate, clamp) exist for the type.
bool hasWrapping(const Wrapping& wrap, const std::string& type) {
  const auto has = [&](const char* operation) { return registry().find(operation + type) != nullptr; };
  return (!wrap.ftz || has("flush.")) && (!wrap.sat || has("saturate.")) && (!wrap.relu || has("clamp.relu."));
}

// Emits the row with its wrapping operations; the result goes to `target`. Overwrites `in` with the flushed operands.
void emitRow(Decoder& decoder, const Statement& statement, const Found& found, Value target, Value* in) {
  const Row& row = *found.row;
  const std::string type(statement.last());
  // The sign of a NaN matters for .xorsign: flushing an operand must not make its NaN canonical.
  const std::string flush = type == "f32" ? "flush.result.f32" : "flush." + type;
  const Wrapping& wrap = found.wrap;
  for (int i = 0; i < row.inputs; ++i)
    if (wrap.ftz && narrow(row.in[i])) in[i] = apply(decoder, flush, in[i]);
  if (!wrap.ftz && !wrap.sat && !wrap.relu) {
    decoder.build().row(row, target, in);
    return;
  }
  Value out = decoder.build().reg(row.out.registerBytes);
  decoder.build().row(row, out, in);
  const bool floatResult = row.out.literal != Literal::predicate;
  if (const Row* const flushes = wrap.ftz && floatResult ? findFlush(statement) : nullptr) {
    const Value with[] = {out, in[0], in[1], in[2]}, flushed = decoder.build().reg(4);
    decoder.build().row(*flushes, flushed, with);
    out = flushed;
  } else if (wrap.ftz && floatResult) {
    out = apply(decoder, "flush." + type, out);
  }
  if (wrap.relu) out = apply(decoder, "clamp.relu." + type, out);
  if (wrap.sat) out = apply(decoder, "saturate." + type, out);
  decoder.build().move(target, out);
}

// f32x2, two floats in a 64-bit register: emits the scalar operation for the low halves, then for the high halves.
bool decodePairs(Decoder& decoder, Statement statement) {
  const std::vector<Operand>& operands = statement.operands;
  statement.parts.back() = "f32";
  const Found found = findRow(statement.parts);
  if (!found.row || !hasWrapping(found.wrap, "f32")) return false;
  decoder.operandCount(statement, found.row->inputs + size_t{1}, found.row->inputs + size_t{1});
  Builder& build = decoder.build();
  Value halves[2], in[2][5];
  for (int i = 0; i < found.row->inputs; ++i) {
    const Value pair = decoder.source(operands[i + 1], 8);
    for (const int half : {0, 1}) build.lane(half ? "hi.b64" : "lo.b64", in[half][i] = build.reg(4), {pair});
  }
  for (const int half : {0, 1}) emitRow(decoder, statement, found, halves[half] = build.reg(4), in[half]);
  build.lane("pack.b64", decoder.target(operands[0], 8), {halves[0], halves[1]});
  return true;
}

// min and max of three floats: of the first two, then of that result and the third.
bool decodeThree(Decoder& decoder, const Statement& statement, const Found& found) {
  Value in[3], between[2] = {decoder.build().reg(4)};
  for (int i = 0; i < 3; ++i) in[i] = decoder.source(statement.operands[i + 1], found.row->in[0]);
  emitRow(decoder, statement, found, between[0], in);
  between[1] = in[2];
  emitRow(decoder, statement, found, decoder.target(statement.operands[0], 4), between);
  return true;
}

}  // namespace

bool decodeLane(Decoder& decoder, const Statement& statement) {
  if (statement.last() == "f32x2") return decodePairs(decoder, statement);
  const Found found = findRow(statement.parts);
  if (!found.row) return false;
  const Row& row = *found.row;
  const bool isExtreme = statement.last() == "f32" && (statement.parts[0] == "min" || statement.parts[0] == "max");
  if (isExtreme && statement.operands.size() == 4) return decodeThree(decoder, statement, found);
  decoder.operandCount(statement, row.inputs + size_t{1}, row.inputs + size_t{1});
  if (!hasWrapping(found.wrap, std::string(statement.last()))) return false;
  Value in[5];
  for (int i = 0; i < row.inputs; ++i) in[i] = decoder.source(statement.operands[i + 1], row.in[i]);
  const Value target = decoder.target(statement.operands[0], row.out.registerBytes, statement.last().starts_with('s'));
  emitRow(decoder, statement, found, target, in);
  return true;
}

}  // namespace vgpu::emulator
