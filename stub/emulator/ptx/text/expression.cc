// Constant expressions over whole numbers (PTX ISA, "Constant Expressions"): 64-bit, C's precedence.
#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/lexer.h"
#include "stub/emulator/ptx/text/number.h"

namespace vgpu::emulator {
namespace {

constexpr int deepestNesting = 64;  // hostile text nests parentheses without end

struct Operator {
  std::string_view text;
  int precedence;
  uint64_t (*apply)(uint64_t, uint64_t);
};

int64_t asSigned(uint64_t value) { return static_cast<int64_t>(value); }

const Operator operators[] = {
    {"*", 10, [](uint64_t a, uint64_t b) { return a * b; }},
    {"/", 10, [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }},
    {"%", 10, [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }},
    {"+", 9, [](uint64_t a, uint64_t b) { return a + b; }},
    {"-", 9, [](uint64_t a, uint64_t b) { return a - b; }},
    {"<<", 8, [](uint64_t a, uint64_t b) { return b > 63 ? 0 : a << b; }},
    {">>", 8, [](uint64_t a, uint64_t b) { return b > 63 ? 0 : a >> b; }},
    {"<", 7, [](uint64_t a, uint64_t b) { return uint64_t{asSigned(a) < asSigned(b)}; }},
    {">", 7, [](uint64_t a, uint64_t b) { return uint64_t{asSigned(a) > asSigned(b)}; }},
    {"<=", 7, [](uint64_t a, uint64_t b) { return uint64_t{asSigned(a) <= asSigned(b)}; }},
    {">=", 7, [](uint64_t a, uint64_t b) { return uint64_t{asSigned(a) >= asSigned(b)}; }},
    {"==", 6, [](uint64_t a, uint64_t b) { return uint64_t{a == b}; }},
    {"!=", 6, [](uint64_t a, uint64_t b) { return uint64_t{a != b}; }},
    {"&", 5, [](uint64_t a, uint64_t b) { return a & b; }},
    {"^", 4, [](uint64_t a, uint64_t b) { return a ^ b; }},
    {"&&", 2, [](uint64_t a, uint64_t b) { return uint64_t{a && b}; }},
    {"||", 1, [](uint64_t a, uint64_t b) { return uint64_t{a || b}; }},
};

const Operator* findOperator(const Token& token) {
  if (token.kind != Token::Kind::punctuation) return nullptr;
  for (const Operator& each : operators)
    if (each.text == token.text) return &each;
  return nullptr;
}

uint64_t parseBinary(Lexer& lexer, int precedence, int depth);

uint64_t parseUnary(Lexer& lexer, int depth) {
  const Token token = lexer.next();
  if (depth > deepestNesting)
    throw PtxError(PtxError::Kind::invalid, token.line, "a constant expression nested too deep");
  if (token.is("-")) return -parseUnary(lexer, depth + 1);
  if (token.is("+")) return parseUnary(lexer, depth + 1);
  if (token.is("~")) return ~parseUnary(lexer, depth + 1);
  if (token.is("!")) return parseUnary(lexer, depth + 1) == 0;
  if (token.is("WARP_SZ")) return 32;
  if (token.is("(")) {
    if (lexer.accept(".s64") || lexer.accept(".u64")) {
      lexer.expect(")");
      return parseUnary(lexer, depth + 1);
    }
    const uint64_t value = parseBinary(lexer, 1, depth + 1);
    lexer.expect(")");
    return value;
  }
  return parseWhole(token);
}

uint64_t parseBinary(Lexer& lexer, int precedence, int depth) {
  uint64_t left = parseUnary(lexer, depth);
  while (true) {
    const Operator* found = findOperator(lexer.peek());
    if (!found || found->precedence < precedence) return left;
    lexer.next();
    left = found->apply(left, parseBinary(lexer, found->precedence + 1, depth + 1));
  }
}

}  // namespace

uint64_t parseConstant(Lexer& lexer) { return parseBinary(lexer, 1, 0); }

}  // namespace vgpu::emulator
