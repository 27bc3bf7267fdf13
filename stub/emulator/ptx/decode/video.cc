// Video instructions on all four bytes or both halves: vadd4.dtype.atype.btype{.sat|.add} d{.mask}, a{.select}, b{.select}, c and similar
// ones, vset4.atype.btype.compare{.add}. The plain forms are rows of the registry; the others are computed part by part.
#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

struct VideoText {
  std::string_view operation;  // without the number of parts
  std::string_view result, a, b, compare;
  uint32_t parts = 0;
  bool saturates = false, accumulates = false;
  uint32_t bits() const { return 32 / parts; }
};

bool isWord(std::string_view type) { return type == "u32" || type == "s32"; }

VideoText parse(Decoder& decoder, const Statement& statement) {
  VideoText text;
  const auto& parts = statement.parts;
  text.operation = parts[0].substr(0, parts[0].size() - 1);
  text.parts = static_cast<uint32_t>(parts[0].back() - '0');
  const bool compares = text.operation == "vset";
  if (parts.size() < 4 || parts.size() > 5) decoder.unsupported(statement);
  if (compares)
    text.result = "u32", text.a = parts[1], text.b = parts[2], text.compare = parts[3];
  else
    text.result = parts[1], text.a = parts[2], text.b = parts[3];
  if (!isWord(text.result) || !isWord(text.a) || !isWord(text.b)) decoder.unsupported(statement);
  if (parts.size() == 5) {
    text.accumulates = parts[4] == "add";
    text.saturates = parts[4] == "sat" && !compares;
    if (!text.accumulates && !text.saturates) decoder.unsupported(statement);
  }
  return text;
}

// "%r1.b7610": the parts of a and b, numbered consecutively, that make up an operand, highest first.
struct Selection {
  Operand of;
  std::vector<uint32_t> parts;
};
Selection selectionOf(Decoder& decoder, const Statement& statement, const VideoText& text, const Operand& operand, uint32_t first) {
  Selection found{operand, {}};
  const size_t dot = operand.kind == Operand::Kind::name ? operand.name.rfind('.') : std::string_view::npos;
  if (dot == std::string_view::npos || decoder.find(operand.name)) {
    for (uint32_t i = 0; i < text.parts; ++i) found.parts.push_back(first + i);
    return found;
  }
  found.of.name = operand.name.substr(0, dot);
  const std::string_view digits = operand.name.substr(dot + 1);
  if (digits.size() != text.parts + 1 || digits[0] != (text.parts == 4 ? 'b' : 'h')) decoder.unsupported(statement);
  for (size_t i = text.parts; i > 0; --i) {
    const auto part = static_cast<uint32_t>(digits[i] - '0');
    if (part >= 2 * text.parts) decoder.unsupported(statement);
    found.parts.push_back(part);
  }
  return found;
}

// "%r1.b20": the parts that are written; all if none are given.
uint32_t maskOf(Decoder& decoder, const Statement& statement, const VideoText& text, Operand& to) {
  const size_t dot = to.name.rfind('.');
  if (dot == std::string_view::npos || decoder.find(to.name)) return (1u << text.parts) - 1;
  const std::string_view digits = to.name.substr(dot + 1);
  to.name = to.name.substr(0, dot);
  uint32_t mask = 0;
  for (const char digit : digits.substr(1)) mask |= 1u << (digit - '0');
  if (digits.size() < 2 || digits[0] != (text.parts == 4 ? 'b' : 'h') || mask >> text.parts) decoder.unsupported(statement);
  return mask;
}

class Parts {
 public:
  Parts(Decoder& decoder, const Statement& statement, const VideoText& text) : decoder(decoder), statement(statement), text(text) {}

  void run() {
    decoder.operandCount(statement, 4, 4);
    Operand to = statement.operands[0];
    const uint32_t mask = maskOf(decoder, statement, text, to);
    const Selection a = selectionOf(decoder, statement, text, statement.operands[1], 0),
                    b = selectionOf(decoder, statement, text, statement.operands[2], text.parts);
    sources[0] = decoder.source(a.of, 4), sources[1] = decoder.source(b.of, 4);
    Value result = decoder.source(statement.operands[3], 4);
    for (uint32_t i = 0; i < text.parts; ++i) {
      if (!(mask >> i & 1)) continue;
      const Value part = finished(combined(extracted(a.parts[i], text.a), extracted(b.parts[i], text.b)));
      result = text.accumulates ? lane("add.u32", {result, part})
                                : lane("bfi.b32", {part, result, constant(i * text.bits()), constant(text.bits())});
    }
    decoder.build().move(decoder.target(to, 4), result);
  }

 private:
  Value constant(uint64_t value) { return decoder.build().constant(4, value); }
  Value lane(const std::string& name, std::initializer_list<Value> ins) {
    if (!registry().find(name)) decoder.unsupported(statement);
    const Value out = decoder.build().reg(4);
    decoder.build().lane(name, out, ins);
    return out;
  }
  Value extracted(uint32_t part, std::string_view type) {
    return lane(type == "s32" ? "bfe.s32" : "bfe.u32",
                {sources[part / text.parts], constant(part % text.parts * text.bits()), constant(text.bits())});
  }
  // For two values whose result fits into 32 bits.
  Value combined(Value a, Value b) {
    const std::string_view operation = text.operation;
    if (operation == "vset")
      return lane("selp.b32", {constant(1), constant(0), lane("setp." + std::string(text.compare) + ".s32", {a, b})});
    if (operation == "vabsdiff") return lane("sad.s32", {a, b, constant(0)});
    if (operation != "vavrg") return lane(std::string(operation.substr(1)) + ".s32", {a, b});
    // Rounded to nearest, ties away from zero (PTX ISA, vavrg2).
    const Value sum = lane("add.s32", {a, b});
    const Value up = lane("selp.b32", {constant(1), constant(0), lane("setp.ge.s32", {sum, constant(0)})});
    return lane("shr.s32", {lane("add.s32", {sum, up}), constant(1)});
  }
  Value finished(Value part) {
    if (!text.saturates) return part;
    const bool isSigned = text.result == "s32";
    const int64_t most = (int64_t{1} << (text.bits() - isSigned)) - 1, least = isSigned ? -most - 1 : 0;
    return lane("max.s32", {lane("min.s32", {part, constant(static_cast<uint64_t>(most))}), constant(static_cast<uint64_t>(least))});
  }

  Decoder& decoder;
  const Statement& statement;
  const VideoText& text;
  Value sources[2];
};

bool isPlainName(Decoder& decoder, const Operand& operand) {
  return operand.kind != Operand::Kind::name || decoder.find(operand.name) || operand.name.find('.') == std::string_view::npos;
}

// For a single type, with every part written: `c` is added, or ignored.
bool decodePlain(Decoder& decoder, const Statement& statement, const VideoText& text) {
  const bool uniform = text.a == text.b && (text.result == text.a || text.accumulates) && !text.saturates;
  if (!uniform || text.operation == "vset" || (text.accumulates && text.operation != "vabsdiff")) return false;
  decoder.operandCount(statement, 4, 4);
  for (const Operand& operand : statement.operands)
    if (!isPlainName(decoder, operand)) return false;
  const std::string suffix = text.parts == 4 ? "8x4" : "16x2";
  Builder& build = decoder.build();
  const Value a = decoder.source(statement.operands[1], 4), b = decoder.source(statement.operands[2], 4);
  const Value parts = text.accumulates ? build.reg(4) : decoder.target(statement.operands[0], 4);
  build.lane(std::string(text.operation).append(".").append(text.a.substr(0, 1)).append(suffix), parts, {a, b});
  if (text.accumulates)
    build.lane("vsum.u" + suffix, decoder.target(statement.operands[0], 4), {parts, decoder.source(statement.operands[3], 4)});
  return true;
}

void video(Decoder& decoder, const Statement& statement) {
  const VideoText text = parse(decoder, statement);
  if (!decodePlain(decoder, statement, text)) Parts(decoder, statement, text).run();
}

constexpr DecodeRow decodeRows[] = {
    {"vadd4", video},     {"vsub4", video}, {"vavrg4", video}, {"vabsdiff4", video}, {"vmin4", video},
    {"vmax4", video},     {"vset4", video}, {"vadd2", video},  {"vsub2", video},     {"vavrg2", video},
    {"vabsdiff2", video}, {"vmin2", video}, {"vmax2", video},  {"vset2", video},
};

}  // namespace

std::span<const DecodeRow> videoDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
