// mma, wmma, ldmatrix, stmatrix, movmatrix.
#include <charconv>

#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/run/matrix.h"
#include "stub/emulator/ptx/run/sparse.h"

namespace vgpu::emulator {
namespace {

struct MatrixText {
  int m = 0, n = 0, k = 0;
  std::vector<Element> elements;
  bool saturate = false, counts = false, differ = false;  // the last two: .popc, .xor
  uint8_t rounding = 0;                                   // a rounding flag, if not to nearest
  std::vector<std::string_view> layouts;
};

// "m16n8k16"
bool parseShape(std::string_view text, MatrixText& found) {
  int* const sizes[] = {&found.m, &found.n, &found.k};
  const char letters[] = {'m', 'n', 'k'};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 3; ++i) {
    if (at == end || *at != letters[i]) return false;
    const auto [after, error] = std::from_chars(at + 1, end, *sizes[i]);
    if (error != std::errc()) return false;
    at = after;
  }
  return at == end;
}

MatrixText parse(Decoder& decoder, const Statement& statement, size_t first) {
  MatrixText found;
  for (size_t i = first; i < statement.parts.size(); ++i) {
    const std::string_view part = statement.parts[i];
    if (found.m == 0 && parseShape(part, found)) continue;
    if (const auto element = findElement(part))
      found.elements.push_back(*element);
    else if (part == "row" || part == "col")
      found.layouts.push_back(part);
    else if (part == "satfinite")
      found.saturate = true;
    else if (part == "popc")
      found.counts = true;
    else if (part == "xor" || part == "and")
      found.differ = part == "xor";
    else if (part == "rz" || part == "rm" || part == "rp")
      found.rounding = part == "rz" ? towardZeroFlag : part == "rm" ? downFlag : upFlag;
    else if (part != "sync" && part != "aligned" && part != "rn" && !part.starts_with("shared") && part != "global")
      decoder.unsupported(statement);
  }
  if (found.m == 0) decoder.unsupported(statement);
  return found;
}

std::vector<Operand> listOf(const Operand& operand) {
  return operand.kind == Operand::Kind::vector ? operand.parts : std::vector<Operand>{operand};
}

std::vector<Value> targets(Decoder& decoder, const Operand& operand, Element e) {
  std::vector<Value> values;
  for (const Operand& each : listOf(operand)) values.push_back(decoder.target(each, e == Element::f64 ? 8 : 4));
  return values;
}

void appendSources(Decoder& decoder, const Operand& operand, Element e, std::vector<Value>& values) {
  const Literal literal = e == Element::f32 ? Literal::f32 : e == Element::f64 ? Literal::f64 : Literal::whole;
  for (const Operand& each : listOf(operand))
    values.push_back(decoder.source(each, e == Element::f64 ? 8 : 4, literal));
}

uint8_t narrow(int value) { return static_cast<uint8_t>(value); }

// The form of a single matrix.
MatrixForm formOf(int m, int n, int k, Element e, uint8_t flags) {
  MatrixForm form{};
  form.k = static_cast<uint16_t>(k);
  form.m = narrow(m);
  form.n = narrow(n);
  form.a = e;
  form.flags = flags;
  return form;
}

MatrixForm formOf(const MatrixText& text) {
  const uint8_t flags = (text.saturate ? saturateFlag : 0) | (text.differ ? xorFlag : 0) | text.rounding;
  MatrixForm form = formOf(text.m, text.n, text.k, text.elements[1], flags);
  form.b = text.elements[2];
  form.c = text.elements[3];
  form.d = text.elements[0];
  return form;
}

// Valid combinations of operand and result types. Only single-bit elements are combined by a logical operation and counted.
bool fits(const MatrixForm& form, const MatrixText& text) {
  const int deepest = form.a == Element::b1 ? mostDepth : form.flags & sparseFlag ? 128 : 64;
  if (text.rounding && form.a != Element::f64) return false;
  if (text.k > deepest || form.c == Element::none || form.d == Element::none) return false;
  if ((form.a == Element::b1) != text.counts || (text.differ && !text.counts)) return false;
  if (isWhole(form.a))
    return isWhole(form.b) && bitsOf(form.a) == bitsOf(form.b) && form.c == Element::s32 && form.d == Element::s32;
  const bool isFloats = isFloat8(form.a) && isFloat8(form.b);
  if (form.a != form.b && !isFloats) return false;
  if (form.a == Element::f64) return form.c == Element::f64 && form.d == Element::f64;
  const auto isAccumulator = [&](Element e) {
    return e == Element::f32 || (e == Element::f16 && (form.a == Element::f16 || isFloats));
  };
  return (form.a == Element::f16 || form.a == Element::bf16 || form.a == Element::tf32 || isFloats) && isAccumulator(form.c) &&
         isAccumulator(form.d);
}

// mma.sp: the threads that hold an instruction's metadata; their number must divide the four threads of a group.
uint8_t selectorOf(Decoder& decoder, const Statement& statement, const MatrixForm& form) {
  const Operand& operand = statement.operands[5];
  const uint32_t threads = sparseThreads(form.a, form.k);
  if (operand.kind != Operand::Kind::number || threads == 0 || operand.whole >= 4 / threads)
    decoder.invalid(statement.line, "a sparsity selector that this shape does not have");
  return static_cast<uint8_t>(operand.whole);
}

// mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 d, a, b, c: each thread has four elements of A and of B and eight of C and D
void mmaQuads(Decoder& decoder, const Statement& statement, const MatrixText& text) {
  MatrixForm form = formOf(text);
  if (form.b != Element::f16 || !fits(form, text) || (form.c == Element::f32 && form.d != Element::f32) || text.saturate)
    decoder.unsupported(statement);
  form.flags |= (text.layouts[0] == "col" ? columnMajorFlag : 0) | (text.layouts[1] == "row" ? rowMajorBFlag : 0);
  std::vector<Value> ins;
  const Element of[] = {form.a, form.b, form.c};
  const uint32_t sizes[] = {4, 4, 8};
  for (int i = 0; i < 3; ++i) {
    const size_t before = ins.size();
    appendSources(decoder, statement.operands[i + 1], of[i], ins);
    if ((ins.size() - before) * perRegister(of[i]) != sizes[i])
      decoder.invalid(statement.line, "a fragment with the wrong number of registers");
  }
  const auto outs = targets(decoder, statement.operands[0], form.d);
  if (outs.size() * perRegister(form.d) != 8) decoder.invalid(statement.line, "a fragment with the wrong number of registers");
  decoder.build().wide(multiplyQuads, outs, ins).imm = bitsOf(form);
}

// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c; in mma.sp the metadata and its selector follow.
void mma(Decoder& decoder, const Statement& statement) {
  const bool sparse = statement.has("sp") || statement.has("sp::ordered_metadata");
  decoder.operandCount(statement, sparse ? 6 : 4, sparse ? 6 : 4);
  const MatrixText text = parse(decoder, statement, sparse ? 2 : 1);
  if (text.elements.size() == 4 && text.layouts.size() == 2 && text.m == 8 && text.n == 8 && text.k == 4 && !sparse &&
      text.elements[1] == Element::f16)
    return mmaQuads(decoder, statement, text);
  if (text.elements.size() != 4 || text.layouts.size() != 2 || text.layouts[0] != "row" || text.layouts[1] != "col")
    decoder.unsupported(statement);
  MatrixForm form = formOf(text);
  if (sparse) form.flags |= sparseFlag;
  const bool shaped = (form.m == 16 || form.m == 8) && form.n == 8 && (form.m == 16 || form.a != Element::f16);
  const bool maySparse = form.m == 16 && form.a != Element::f64 && form.a != Element::b1;
  if (!shaped || !fits(form, text) || (sparse && !maySparse)) decoder.unsupported(statement);
  std::vector<Value> ins;
  const Element of[] = {form.a, form.b, form.c};
  const uint32_t sizes[] = {uint32_t{form.m} * form.k / (sparse ? 2 : 1), uint32_t{form.n} * form.k, uint32_t{form.m} * form.n};
  for (int i = 0; i < 3; ++i) {
    const size_t before = ins.size();
    appendSources(decoder, statement.operands[i + 1], of[i], ins);
    if ((ins.size() - before) * perRegister(of[i]) * laneCount != sizes[i])
      decoder.invalid(statement.line, "a fragment with the wrong number of registers");
  }
  if (sparse) {
    ins.push_back(decoder.source(statement.operands[4], 4));
    form.selector = selectorOf(decoder, statement, form);
  }
  const auto outs = targets(decoder, statement.operands[0], form.d);
  if (outs.size() * perRegister(form.d) * laneCount != sizes[2])
    decoder.invalid(statement.line, "a fragment with the wrong number of registers");
  decoder.build().wide(multiplyMatrices, outs, ins).imm = bitsOf(form);
}

bool holds(size_t registers, Element e, int elements) {
  return registers * perRegister(e) * laneCount >= static_cast<size_t>(elements);
}

void wmmaMultiply(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 4, 4);
  MatrixText text = parse(decoder, statement, 2);
  // For half precision the types of A and B are not written.
  if (text.elements.size() == 2) text.elements = {text.elements[0], Element::f16, Element::f16, text.elements[1]};
  if (text.elements.size() != 4) decoder.unsupported(statement);
  const MatrixForm form = formOf(text);
  if (text.m > 32 || text.n > 32 || !fits(form, text)) decoder.unsupported(statement);
  std::vector<Value> ins;
  appendSources(decoder, statement.operands[1], form.a, ins);
  const size_t aRegisters = ins.size();
  appendSources(decoder, statement.operands[2], form.b, ins);
  const size_t bRegisters = ins.size() - aRegisters;
  appendSources(decoder, statement.operands[3], form.c, ins);
  const auto outs = targets(decoder, statement.operands[0], form.d);
  if (!holds(aRegisters, form.a, text.m * text.k) || !holds(bRegisters, form.b, text.n * text.k) ||
      !holds(outs.size(), form.d, text.m * text.n) ||
      !holds(ins.size() - aRegisters - bRegisters, form.c, text.m * text.n))
    decoder.invalid(statement.line, "a fragment of too few registers");
  IrInst& inst = decoder.build().wide(multiplyFragments, outs, ins);
  inst.imm = bitsOf(form);
  inst.raw0 = static_cast<int32_t>(aRegisters);
  inst.raw1 = static_cast<int32_t>(bRegisters);
}

Value addressValue(Decoder& decoder, const Statement& statement, const Operand& operand) {
  bool shared = false;
  for (const std::string_view part : statement.parts) shared |= part.starts_with("shared");
  return decoder.genericAddress(operand, shared);
}

// wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {…}, [p], stride; wmma.store.d…. [p], {…}, stride
void wmmaAccess(Decoder& decoder, const Statement& statement, bool store) {
  decoder.operandCount(statement, 2, 3);
  const std::string_view matrix = statement.parts[2];
  const MatrixText text = parse(decoder, statement, 3);
  if (text.elements.size() != 1 || text.layouts.size() != 1 || matrix.size() != 1) decoder.unsupported(statement);
  const int rows = matrix == "b" ? text.k : text.m, columns = matrix == "a" ? text.k : text.n;
  const Element e = text.elements[0];
  if (rows > mostDepth || columns > mostDepth || (bitsOf(e) < 8 && store)) decoder.unsupported(statement);
  const bool byColumn = text.layouts[0] == "col";
  const MatrixForm form = formOf(rows, columns, 0, e, byColumn ? columnMajorFlag : uint8_t{0});
  const Operand &memory = statement.operands[store ? 0 : 1], &fragment = statement.operands[store ? 1 : 0];
  const Value address = addressValue(decoder, statement, memory);
  const Value stride = statement.operands.size() > 2
                           ? decoder.source(statement.operands[2], 4)
                           : decoder.build().constant(4, static_cast<uint64_t>(byColumn ? rows : columns));
  std::vector<Value> ins{address, stride};
  if (!holds(listOf(fragment).size(), e, rows * columns))
    decoder.invalid(statement.line, "a fragment of too few registers");
  if (store) {
    appendSources(decoder, fragment, e, ins);
    decoder.build().wide(storeFragment, {}, ins).imm = bitsOf(form);
  } else {
    decoder.build().wide(loadFragment, targets(decoder, fragment, e), ins).imm = bitsOf(form);
  }
}

void wmma(Decoder& decoder, const Statement& statement) {
  if (statement.parts.size() < 6) decoder.unsupported(statement);
  if (statement.parts[1] == "mma") return wmmaMultiply(decoder, statement);
  if (statement.parts[1] != "load" && statement.parts[1] != "store") decoder.unsupported(statement);
  wmmaAccess(decoder, statement, statement.parts[1] == "store");
}

// ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16
template <bool Store>
void matrixRows(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 2);
  if (!statement.has("m8n8") || statement.last() != "b16") decoder.unsupported(statement);
  const int count = statement.has("x4") ? 4 : statement.has("x2") ? 2 : 1;
  const Operand &memory = statement.operands[Store ? 0 : 1], &fragment = statement.operands[Store ? 1 : 0];
  if (listOf(fragment).size() != static_cast<size_t>(count))
    decoder.invalid(statement.line, "a fragment with the wrong number of registers");
  const MatrixForm form = formOf(8, 8, count, Element::f16, statement.has("trans") ? transposedFlag : uint8_t{0});
  std::vector<Value> ins{addressValue(decoder, statement, memory)};
  if (Store) {
    appendSources(decoder, fragment, Element::f16, ins);
    decoder.build().wide(storeMatrices, {}, ins).imm = bitsOf(form);
  } else {
    decoder.build().wide(loadMatrices, targets(decoder, fragment, Element::f16), ins).imm = bitsOf(form);
  }
}

void movmatrix(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 2);
  if (!statement.has("m8n8") || !statement.has("trans") || statement.last() != "b16") decoder.unsupported(statement);
  std::vector<Value> ins;
  appendSources(decoder, statement.operands[1], Element::f16, ins);
  decoder.build().wide(transposeMatrix, targets(decoder, statement.operands[0], Element::f16), ins);
}

constexpr DecodeRow decodeRows[] = {
    {"mma", mma, true},
    {"wmma", wmma, true},
    {"ldmatrix", matrixRows<false>, true},
    {"stmatrix", matrixRows<true>, true},
    {"movmatrix", movmatrix, true},
};

}  // namespace

std::span<const DecodeRow> matrixDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
