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

}  // namespace

bool decodeLane(Decoder& decoder, const Statement& statement) {
  const Found found = findRow(statement.parts);
  if (!found.row) return false;
  const Row& row = *found.row;
  decoder.operandCount(statement, row.inputs + size_t{1}, row.inputs + size_t{1});
  const std::string type(statement.last());
  // The sign of a NaN matters for .xorsign: flushing an operand must not make its NaN canonical.
  const std::string flush = type == "f32" ? "flush.result.f32" : "flush." + type;
  const Wrapping& wrap = found.wrap;
  if ((wrap.ftz && !registry().find("flush." + type)) || (wrap.sat && !registry().find("saturate." + type)) ||
      (wrap.relu && !registry().find("clamp.relu." + type)))
    return false;
  Value in[5];
  for (int i = 0; i < row.inputs; ++i) {
    in[i] = decoder.source(statement.operands[i + 1], row.in[i]);
    if (wrap.ftz && narrow(row.in[i])) in[i] = apply(decoder, flush, in[i]);
  }
  const std::string_view resultType = statement.last();
  const Value target = decoder.target(statement.operands[0], row.out.registerBytes, resultType.starts_with('s'));
  if (!wrap.ftz && !wrap.sat && !wrap.relu) {
    decoder.build().row(row, target, in);
    return true;
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
  return true;
}

}  // namespace vgpu::emulator
