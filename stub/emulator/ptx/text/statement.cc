#include "stub/emulator/ptx/text/statement.h"

#include <algorithm>

#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/number.h"
#include "stub/emulator/ptx/text/types.h"

namespace vgpu::emulator {
namespace {

constexpr int deepestNesting = 8;

class OperandParser {
 public:
  explicit OperandParser(Lexer& lexer) : lexer(lexer) {}

  // `isCall`: a parenthesis begins a list, whatever follows it.
  Operand parse(int depth = 0, bool isCall = false) {
    const Token token = lexer.peek();
    if (depth > deepestNesting) throw PtxError(PtxError::Kind::invalid, token.line, "operands nested too deep");
    Operand operand;
    operand.line = token.line;
    if (token.is("[")) return memory(depth);
    if (token.is("{")) {
      operand = group(Operand::Kind::vector, "{", "}", depth);
      return lexer.accept("|") ? paired(operand) : operand;
    }
    if (token.is("!") && !startsExpression()) {
      lexer.next();
      operand = parse(depth + 1);
      operand.negated = true;
      return operand;
    }
    if (token.is("(") && (isCall || !startsExpression())) return group(Operand::Kind::list, "(", ")", depth);
    if (token.kind == Token::Kind::word && !token.is("WARP_SZ")) return name();
    if (token.is("-") && negatesName()) {
      lexer.next();
      operand = name();
      operand.minus = true;
      return operand;
    }
    return number();
  }

 private:
  bool startsExpression() const {
    Lexer ahead = lexer;
    ahead.next();
    const Token token = ahead.next();
    return token.kind == Token::Kind::number || token.is("-") || token.is("(");
  }

  bool negatesName() const {
    Lexer ahead = lexer;
    ahead.next();
    const Token token = ahead.next();
    return token.kind == Token::Kind::word && !token.is("WARP_SZ");
  }

  Operand group(Operand::Kind kind, std::string_view open, std::string_view close, int depth) {
    Operand operand;
    operand.kind = kind;
    operand.line = lexer.expect(open).line;
    while (!lexer.accept(close)) {
      operand.parts.push_back(parse(depth + 1));
      if (!lexer.accept(",") && !lexer.peek().is(close)) lexer.expect(close);
    }
    return operand;
  }

  int64_t offset() {
    if (lexer.accept("+")) return static_cast<int64_t>(parseConstant(lexer));
    if (lexer.peek().is("-")) return static_cast<int64_t>(parseConstant(lexer));
    return 0;
  }

  Operand memory(int depth) {
    Operand operand;
    operand.kind = Operand::Kind::memory;
    operand.line = lexer.expect("[").line;
    const Token base = lexer.peek();
    if (base.kind == Token::Kind::word) {
      operand.name = lexer.next().text;
      if (lexer.accept("[")) {
        operand.offset = static_cast<int64_t>(parseConstant(lexer));
        lexer.expect("]");
      }
      operand.offset += offset();
    } else {
      operand.offset = static_cast<int64_t>(parseConstant(lexer));
    }
    while (lexer.accept(",")) operand.parts.push_back(parse(depth + 1));
    lexer.expect("]");
    return operand;
  }

  // After the `|`: a second result.
  Operand paired(const Operand& first) {
    Operand pair;
    pair.kind = Operand::Kind::pair;
    pair.line = first.line;
    Operand second;
    second.line = lexer.peek().line;
    second.negated = lexer.accept("!");
    second.name = lexer.expectWord("a register").text;
    pair.parts = {first, second};
    return pair;
  }

  Operand name() {
    Operand operand;
    const Token token = lexer.next();
    operand.line = token.line;
    operand.name = token.text;
    if (lexer.accept("|")) return paired(operand);
    operand.offset = offset();
    return operand;
  }

  Operand number() {
    Operand operand;
    operand.kind = Operand::Kind::number;
    operand.line = lexer.peek().line;
    Lexer ahead = lexer;
    operand.minus = ahead.accept("-");
    const Token token = ahead.next();
    if (isFloatNumber(token)) {
      operand.isFloat = true;
      operand.token = token;
      parseFloat(token);  // refuses malformed numbers
      lexer = ahead;
    } else {
      operand.minus = false;
      operand.whole = parseConstant(lexer);
    }
    return operand;
  }

  Lexer& lexer;
};

std::vector<std::string_view> split(std::string_view opcode) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t dot = opcode.find('.');
    parts.push_back(opcode.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    opcode.remove_prefix(dot + 1);
  }
}

// ptxas also accepts arithmetic modifiers after the type (NVIDIA's headers write `lg2.approx.f32.ftz`): moves them before the type, except
// in video instructions, whose modifiers belong after it.
void orderModifiers(std::vector<std::string_view>& parts) {
  if (parts[0].starts_with('v')) return;
  const auto isModifier = [](std::string_view part) {
    for (const std::string_view each : {"rn", "rz", "rm", "rp", "approx", "full", "ftz", "sat"})
      if (part == each) return true;
    return false;
  };
  const auto type = std::find_if(parts.begin() + 1, parts.end(), [](std::string_view part) { return findType(part).has_value(); });
  std::stable_partition(type, parts.end(), isModifier);
}

}  // namespace

bool Statement::has(std::string_view part) const {
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i] == part) return true;
  return false;
}

Statement parseStatement(Lexer& lexer) {
  Statement statement;
  if (lexer.accept("@")) {
    statement.guardNegated = lexer.accept("!");
    statement.guard = lexer.expectWord("a guard predicate").text;
  }
  const Token opcode = lexer.expectWord("an instruction");
  statement.line = opcode.line;
  statement.opcode = opcode.text;
  statement.parts = split(opcode.text);
  orderModifiers(statement.parts);
  while (!lexer.accept(";")) {
    statement.operands.push_back(OperandParser(lexer).parse(0, statement.parts[0] == "call"));
    if (!lexer.accept(",") && !lexer.peek().is(";") && !lexer.peek().is("(") && statement.parts[0] != "call")
      lexer.expect(";");
  }
  return statement;
}

}  // namespace vgpu::emulator
