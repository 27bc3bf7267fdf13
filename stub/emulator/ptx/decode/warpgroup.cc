// wgmma, setmaxnreg.
#include <charconv>

#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/run/sparse.h"
#include "stub/emulator/ptx/run/warpgroup.h"

namespace vgpu::emulator {
namespace {

// The types that wgmma supports: depth of one instruction, accumulators, and options of the operands.
struct WarpgroupRow {
  Element a;
  uint16_t depth;
  bool half;        // f16 accumulators are allowed too
  bool transposes;  // either operand's major dimension may be M or N
};
constexpr WarpgroupRow warpgroupRows[] = {
    {Element::f16, 16, true, true},   {Element::bf16, 16, false, true}, {Element::tf32, 8, false, false},
    {Element::e4m3, 32, true, false}, {Element::e5m2, 32, true, false}, {Element::s8, 32, false, false},
    {Element::u8, 32, false, false},  {Element::b1, 256, false, false},
};

const WarpgroupRow* findRow(Element a) {
  for (const WarpgroupRow& row : warpgroupRows)
    if (row.a == a) return &row;
  return nullptr;
}

// Widths of integer products: 8, 16, 24, 32, then multiples of 16.
bool hasWidth(uint32_t n, bool whole) { return n >= 8 && n <= 256 && n % (whole && n > 32 ? 16 : 8) == 0; }

// "m64n16k16"
bool parseShape(std::string_view text, uint32_t& n, uint32_t& k) {
  if (!text.starts_with("m64n")) return false;
  const char* const end = text.data() + text.size();
  const auto [middle, error] = std::from_chars(text.data() + 4, end, n);
  if (error != std::errc() || middle == end || *middle != 'k') return false;
  const auto [last, lastError] = std::from_chars(middle + 1, end, k);
  return lastError == std::errc() && last == end;
}

struct Parsed {
  WarpgroupForm form{};
  const WarpgroupRow* row = nullptr;
  bool whole = false;
};

Parsed parse(Decoder& decoder, const Statement& statement, bool sparse) {
  const size_t at = sparse ? 5 : 4;  // index of the shape in wgmma.mma_async{.sp}.sync.aligned.shape.d.a.b
  uint32_t n = 0, k = 0;
  if (statement.parts.size() < at + 4 || !parseShape(statement.parts[at], n, k)) decoder.unsupported(statement);
  const auto d = findElement(statement.parts[at + 1]), a = findElement(statement.parts[at + 2]),
             b = findElement(statement.parts[at + 3]);
  Parsed found;
  found.row = a ? findRow(*a) : nullptr;
  if (!found.row || !b || !d) decoder.unsupported(statement);
  found.whole = isWhole(*a);
  const bool alike =
      *a == *b || (isFloat8(*a) && isFloat8(*b)) || (found.whole && bitsOf(*a) == 8 && isWhole(*b) && bitsOf(*b) == 8);
  const bool sums = found.whole ? *d == Element::s32 : *d == Element::f32 || (*d == Element::f16 && found.row->half);
  const bool counts = *a != Element::b1 || (statement.has("and") && statement.has("popc") && !sparse);
  if (!alike || !sums || !counts || !hasWidth(n, found.whole) || k != found.row->depth * (sparse ? 2u : 1u))
    decoder.unsupported(statement);
  found.form.n = static_cast<uint16_t>(n);
  found.form.k = static_cast<uint16_t>(k);
  found.form.a = *a;
  found.form.b = *b;
  found.form.d = *d;
  if (sparse) found.form.flags |= aSparse;
  if (found.whole && statement.has("satfinite")) found.form.flags |= sumSaturates;
  return found;
}

int64_t constantOf(Decoder& decoder, const Statement& statement, size_t index) {
  const Operand& operand = statement.operands[index];
  if (operand.kind != Operand::Kind::number || operand.isFloat) decoder.invalid(statement.line, "a constant is needed here");
  return static_cast<int64_t>(operand.whole);
}

// After scale-d: imm-scale-a, imm-scale-b, and for 16-bit elements imm-trans-a, unless A is in registers, and imm-trans-b.
void parseSigns(Decoder& decoder, const Statement& statement, size_t next, Parsed& found) {
  const auto flag = [&](int64_t value, int64_t plain, int64_t set, uint8_t bit) {
    if (value != plain && value != set) decoder.invalid(statement.line, "a constant other than the two allowed ones");
    if (value == set) found.form.flags |= bit;
  };
  if (found.whole) return;
  flag(constantOf(decoder, statement, next), 1, -1, aNegated);
  flag(constantOf(decoder, statement, next + 1), 1, -1, bNegated);
  if (!found.row->transposes) return;
  const bool inRegisters = found.form.flags & aInRegisters;
  if (!inRegisters) flag(constantOf(decoder, statement, next + 2), 0, 1, aTransposed);
  flag(constantOf(decoder, statement, next + (inRegisters ? 2 : 3)), 0, 1, bTransposed);
}

void requireRegisters(Decoder& decoder, const Statement& statement, size_t registers, Element e, uint32_t elements) {
  if (registers * perRegister(e) * laneCount != elements)
    decoder.invalid(statement.line, "a fragment with the wrong number of registers");
}

void appendA(Decoder& decoder, const Statement& statement, Parsed& found, std::vector<Value>& ins) {
  const Operand& a = statement.operands[1];
  if (a.kind != Operand::Kind::vector) return ins.push_back(decoder.source(a, 8));
  found.form.flags |= aInRegisters;
  const uint32_t stored = found.form.flags & aSparse ? found.form.k / 2u : found.form.k;
  requireRegisters(decoder, statement, a.parts.size(), found.form.a, 16 * stored);
  for (const Operand& each : a.parts) ins.push_back(decoder.source(each, 4));
}

// wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 d, a, b-desc, scale-d, …; .sp has the metadata and its selector before
// scale-d.
void multiply(Decoder& decoder, const Statement& statement) {
  const bool sparse = statement.parts[2] == "sp";
  Parsed found = parse(decoder, statement, sparse);
  const size_t scale = sparse ? 5 : 3;
  const bool inRegisters = statement.operands.size() > 1 && statement.operands[1].kind == Operand::Kind::vector;
  const size_t constants = found.whole ? 0 : !found.row->transposes ? 2 : inRegisters ? 3 : 4;
  decoder.operandCount(statement, scale + 1 + constants, scale + 1 + constants);
  const Operand& d = statement.operands[0];
  if (d.kind != Operand::Kind::vector) decoder.invalid(statement.line, "a fragment of registers is needed here");
  requireRegisters(decoder, statement, d.parts.size(), found.form.d, uint32_t{16} * found.form.n);
  std::vector<Value> outs, ins;
  for (const Operand& each : d.parts) outs.push_back(decoder.target(each, 4));
  ins = outs;
  ins.push_back(decoder.source(statement.operands[2], 8));
  ins.push_back(decoder.predicate(statement.operands[scale]));
  appendA(decoder, statement, found, ins);
  if (sparse) {
    const uint32_t threads = sparseThreads(found.form.a, found.form.k);
    ins.push_back(decoder.source(statement.operands[3], 4));
    const int64_t selector = constantOf(decoder, statement, 4);
    if (selector < 0 || selector >= 4 / threads)
      decoder.invalid(statement.line, "a sparsity selector that this shape does not have");
    found.form.selector = static_cast<uint8_t>(selector);
  }
  parseSigns(decoder, statement, scale + 1, found);
  decoder.build().wide(multiplyWarpgroup, outs, ins).imm = bitsOf(found.form);
}

void wgmma(Decoder& decoder, const Statement& statement) {
  const std::string_view operation = statement.parts.size() > 3 ? statement.parts[1] : "";
  if (operation == "mma_async") return multiply(decoder, statement);
  // Nothing to wait for: wgmma.mma_async computes the product when it is executed.
  if (operation == "fence" || operation == "commit_group") return void(decoder.operandCount(statement, 0, 0));
  if (operation != "wait_group") decoder.unsupported(statement);
  decoder.operandCount(statement, 1, 1);
  constantOf(decoder, statement, 0);
}

// setmaxnreg.inc.sync.aligned.u32 n: without effect, because warps do not compete for registers here.
void setRegisters(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 1, 1);
  if (!statement.has("inc") && !statement.has("dec")) decoder.unsupported(statement);
  const int64_t count = constantOf(decoder, statement, 0);
  if (count < 24 || count > 256 || count % 8)
    decoder.invalid(statement.line, "a register count that is not a multiple of 8 from 24 to 256");
}

constexpr DecodeRow decodeRows[] = {{"wgmma", wgmma, true}, {"setmaxnreg", setRegisters}};

}  // namespace

std::span<const DecodeRow> warpgroupDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
