// Constant expressions over integers (PTX ISA, "Constant Expressions"): 64-bit, with C's precedence and signedness.
#include <limits>

#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/lexer.h"
#include "stub/emulator/ptx/text/number.h"

namespace vgpu::emulator {
namespace {

constexpr int deepestNesting = 64;  // hostile text may nest parentheses without end

// A literal is signed unless it is too large or ends in U; an operation on signed operands is signed, with exceptions.
struct Constant {
  uint64_t bits;
  bool isUnsigned = false;
};

struct Operator {
  std::string_view text;
  int precedence;
  uint64_t (*apply)(uint64_t, uint64_t);
  uint64_t (*applySigned)(int64_t, int64_t) = nullptr;  // if it differs for signed operands
  enum class Result { common, isSigned, isUnsigned } result = Result::common;
};

using Result = Operator::Result;
constexpr int64_t leastWhole = std::numeric_limits<int64_t>::min();

uint64_t quotient(int64_t a, int64_t b) {
  if (b == 0 || (a == leastWhole && b == -1)) return 0;
  return static_cast<uint64_t>(a / b);
}
template <class T>
uint64_t less(T a, T b) {
  return a < b;
}
template <class T>
uint64_t more(T a, T b) {
  return a > b;
}
template <class T>
uint64_t atMost(T a, T b) {
  return a <= b;
}
template <class T>
uint64_t atLeast(T a, T b) {
  return a >= b;
}

const Operator operators[] = {
    {"*", 10, [](uint64_t a, uint64_t b) { return a * b; }},
    {"/", 10, [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }, quotient},
    {"%", 10, [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }, nullptr, Result::isSigned},
    {"+", 9, [](uint64_t a, uint64_t b) { return a + b; }},
    {"-", 9, [](uint64_t a, uint64_t b) { return a - b; }},
    {"<<", 8, [](uint64_t a, uint64_t b) { return b > 63 ? 0 : a << b; }},
    {">>", 8, [](uint64_t a, uint64_t b) { return b > 63 ? 0 : a >> b; },
     [](int64_t a, int64_t b) { return static_cast<uint64_t>(a >> (b < 0 || b > 63 ? 63 : b)); }},
    {"<", 7, less<uint64_t>, less<int64_t>, Result::isSigned},
    {">", 7, more<uint64_t>, more<int64_t>, Result::isSigned},
    {"<=", 7, atMost<uint64_t>, atMost<int64_t>, Result::isSigned},
    {">=", 7, atLeast<uint64_t>, atLeast<int64_t>, Result::isSigned},
    {"==", 6, [](uint64_t a, uint64_t b) { return uint64_t{a == b}; }, nullptr, Result::isSigned},
    {"!=", 6, [](uint64_t a, uint64_t b) { return uint64_t{a != b}; }, nullptr, Result::isSigned},
    {"&", 5, [](uint64_t a, uint64_t b) { return a & b; }, nullptr, Result::isUnsigned},
    {"^", 4, [](uint64_t a, uint64_t b) { return a ^ b; }, nullptr, Result::isUnsigned},
    {"|", 3, [](uint64_t a, uint64_t b) { return a | b; }, nullptr, Result::isUnsigned},
    {"&&", 2, [](uint64_t a, uint64_t b) { return uint64_t{a && b}; }, nullptr, Result::isSigned},
    {"||", 1, [](uint64_t a, uint64_t b) { return uint64_t{a || b}; }, nullptr, Result::isSigned},
};

Constant applied(const Operator& found, Constant a, Constant b) {
  const bool shifts = found.precedence == 8;  // for shifts only the left operand's type matters
  const bool isUnsigned = a.isUnsigned || (b.isUnsigned && !shifts);
  const uint64_t bits = isUnsigned || !found.applySigned
                            ? found.apply(a.bits, b.bits)
                            : found.applySigned(static_cast<int64_t>(a.bits), static_cast<int64_t>(b.bits));
  return {bits, found.result == Result::common ? isUnsigned : found.result == Result::isUnsigned};
}

const Operator* findOperator(const Token& token) {
  if (token.kind != Token::Kind::punctuation) return nullptr;
  for (const Operator& each : operators)
    if (each.text == token.text) return &each;
  return nullptr;
}

Constant parseConditional(Lexer& lexer, int depth);

Constant parseUnary(Lexer& lexer, int depth) {
  const Token token = lexer.next();
  if (depth > deepestNesting)
    throw PtxError(PtxError::Kind::invalid, token.line, "a constant expression nested too deep");
  if (token.is("-") || token.is("~")) {
    const Constant of = parseUnary(lexer, depth + 1);
    return token.is("-") ? Constant{-of.bits, of.isUnsigned} : Constant{~of.bits, true};
  }
  if (token.is("+")) return parseUnary(lexer, depth + 1);
  if (token.is("!")) return {parseUnary(lexer, depth + 1).bits == 0};
  if (token.is("WARP_SZ")) return {32};
  if (token.is("(")) {
    const bool isSigned = lexer.accept(".s64");
    if (isSigned || lexer.accept(".u64")) {
      lexer.expect(")");
      return {parseUnary(lexer, depth + 1).bits, !isSigned};
    }
    const Constant value = parseConditional(lexer, depth + 1);
    lexer.expect(")");
    return value;
  }
  const uint64_t whole = parseWhole(token);
  return {whole, whole >> 63 != 0 || token.text.ends_with('U') || token.text.ends_with('u')};
}

Constant parseBinary(Lexer& lexer, int precedence, int depth) {
  Constant left = parseUnary(lexer, depth);
  while (true) {
    const Operator* found = findOperator(lexer.peek());
    if (!found || found->precedence < precedence) return left;
    lexer.next();
    left = applied(*found, left, parseBinary(lexer, found->precedence + 1, depth + 1));
  }
}

Constant parseConditional(Lexer& lexer, int depth) {
  const Constant condition = parseBinary(lexer, 1, depth);
  if (!lexer.accept("?")) return condition;
  const Constant yes = parseConditional(lexer, depth + 1);
  lexer.expect(":");
  const Constant no = parseConditional(lexer, depth + 1);
  return {condition.bits ? yes.bits : no.bits, yes.isUnsigned || no.isUnsigned};
}

}  // namespace

uint64_t parseConstant(Lexer& lexer) { return parseConditional(lexer, 0).bits; }

}  // namespace vgpu::emulator
