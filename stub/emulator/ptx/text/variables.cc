// Variable declarations and their initialisers.
#include <bit>
#include <cstring>

#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/lexer.h"
#include "stub/emulator/ptx/text/number.h"

namespace vgpu::emulator {
namespace {

constexpr uint64_t mostBytes = uint64_t{1} << 40;
constexpr uint64_t mostInitialBytes = uint64_t{1} << 30;

[[noreturn]] void invalid(int line, const std::string& what) { throw PtxError(PtxError::Kind::invalid, line, what); }

struct DeclarationType {
  Type type = Type::none;
  uint32_t align = 0, vector = 1;
  bool managed = false;
};

DeclarationType parseType(Lexer& lexer) {
  DeclarationType found;
  while (lexer.peek().kind == Token::Kind::word && lexer.peek().text[0] == '.') {
    const Token token = lexer.next();
    if (token.is(".align")) {
      const uint64_t align = parseConstant(lexer);
      if (align == 0 || align > 65536 || (align & (align - 1))) invalid(token.line, "a bad .align");
      found.align = static_cast<uint32_t>(align);
    } else if (token.is(".attribute")) {
      lexer.expect("(");
      for (int depth = 1; depth > 0;) {
        const Token part = lexer.next();
        depth += part.is("(") - part.is(")");
        found.managed |= part.is(".managed");
        if (part.kind == Token::Kind::end) invalid(part.line, "expected ')'");
      }
    } else if (token.is(".v2") || token.is(".v4")) {
      found.vector = token.is(".v2") ? 2 : 4;
    } else if (const auto type = findType(token.text.substr(1))) {
      found.type = *type;
    } else if (!token.is(".ptr") && !token.is(".visible")) {
      invalid(token.line, "unknown word '" + std::string(token.text) + "' in a declaration");
    }
  }
  return found;
}

// Parses the value of one element; an address becomes a relocation.
class ElementParser {
 public:
  ElementParser(Lexer& lexer, VariableDecl& variable)
      : lexer(lexer), variable(variable), width(sizeOf(variable.type)) {}

  void parseList() {
    if (++depth > 16) invalid(lexer.line(), "an initialiser nested too deep");
    while (!lexer.accept("}")) {
      if (lexer.accept("{"))
        parseList();
      else
        parseElement();
      if (!lexer.accept(",") && !lexer.peek().is("}")) lexer.expect(",");
    }
    --depth;
  }

  uint64_t offset() const { return filled; }

  void parseElement() {
    if (filled + width > variable.bytes)
      invalid(lexer.line(), "'" + variable.name + "' has more initial values than elements");
    Lexer ahead = lexer;
    const Token token = ahead.next();
    const Token following = ahead.peek();
    if (token.kind == Token::Kind::word) return parseAddress(0);
    if (token.kind == Token::Kind::number && following.is("(")) {
      lexer.next();
      lexer.expect("(");
      parseAddress(parseWhole(token));
      lexer.expect(")");
      return;
    }
    const bool negative = token.is("-");
    if (isFloatNumber(negative ? following : token)) {
      if (negative) lexer.next();
      return storeFloat(lexer.next(), negative);
    }
    storeWhole(parseConstant(lexer));
  }

 private:
  // An integer initialiser for a float is its value, not its bits.
  void storeWhole(uint64_t value) {
    const auto number = static_cast<double>(static_cast<int64_t>(value));
    if (variable.type == Type::f64)
      store(std::bit_cast<uint64_t>(number));
    else if (variable.type == Type::f32)
      store(std::bit_cast<uint32_t>(static_cast<float>(number)));
    else
      store(value);
  }

  // `mask` selects one byte of the address (PTX 7.1's 0xFF00(name)); 0: all of it.
  void parseAddress(uint64_t mask) {
    const Token token = lexer.next();
    std::string_view name = token.text;
    if (token.is("generic")) {
      lexer.expect("(");
      name = lexer.expectWord("a name").text;
      lexer.expect(")");
    }
    int64_t addend = 0;
    if (lexer.accept("+"))
      addend = static_cast<int64_t>(parseConstant(lexer));
    else if (lexer.peek().is("-"))
      addend = static_cast<int64_t>(parseConstant(lexer));
    if (lexer.accept("[")) {
      addend += static_cast<int64_t>(parseConstant(lexer) * width);
      lexer.expect("]");
    }
    const uint32_t shift = mask ? static_cast<uint32_t>(std::countr_zero(mask)) / 8 * 8 : 0;
    variable.relocations.push_back({filled, std::string(name), addend, width, shift, token.line});
    filled += width;
  }

  void storeFloat(const Token& token, bool negative) {
    if (variable.type == Type::f64 || width == 8)
      store(doubleBits(token) ^ (uint64_t{negative} << 63));
    else
      store(floatBits(token) ^ (uint32_t{negative} << 31));
  }

  void store(uint64_t bits) {
    if (filled + width > mostInitialBytes) invalid(lexer.line(), "an initialiser of more than 1 GiB");
    if (variable.initial.size() < filled + width) variable.initial.resize(filled + width);
    std::memcpy(&variable.initial[filled], &bits, std::min(width, 8u));
    filled += width;
  }

  Lexer& lexer;
  VariableDecl& variable;
  uint32_t width;
  uint64_t filled = 0;
  int depth = 0;
};

// `[4][3]` or `[]`; returns the number of elements, 0 for an array without size.
uint64_t parseDimensions(Lexer& lexer, VariableDecl& variable) {
  uint64_t count = 1;
  while (lexer.accept("[")) {
    if (lexer.accept("]")) {
      variable.unsizedArray = true;
      continue;
    }
    const uint64_t dimension = parseConstant(lexer);
    lexer.expect("]");
    if (dimension > mostBytes || count * dimension > mostBytes)
      invalid(variable.line, "'" + variable.name + "' is too large");
    count *= dimension;
  }
  return variable.unsizedArray ? 0 : count;
}

}  // namespace

void parseInitializer(Lexer& lexer, VariableDecl& variable) {
  if (variable.unsizedArray && variable.bytes == 0) {
    // The size is the number of initial values: parses with room for the maximum, then trims.
    variable.bytes = mostInitialBytes;
    lexer.expect("{");
    ElementParser elements(lexer, variable);
    elements.parseList();
    variable.bytes = elements.offset();
    return;
  }
  ElementParser elements(lexer, variable);
  if (lexer.accept("{"))
    elements.parseList();
  else
    elements.parseElement();
}

std::vector<VariableDecl> parseVariables(Lexer& lexer, Space space, int line) {
  const DeclarationType declared = parseType(lexer);
  std::vector<VariableDecl> list;
  do {
    const Token name = lexer.expectWord("a variable's name");
    if (declared.type == Type::none) invalid(name.line, "'" + std::string(name.text) + "' has no type");
    VariableDecl variable;
    variable.name = name.text;
    variable.space = space;
    variable.type = declared.type;
    variable.managed = declared.managed;
    variable.line = line;
    const uint64_t element = uint64_t{sizeOf(declared.type)} * declared.vector;
    variable.align = declared.align ? declared.align : static_cast<uint32_t>(std::max<uint64_t>(element, 1));
    variable.bytes = parseDimensions(lexer, variable) * element;
    if (variable.bytes > mostBytes) invalid(name.line, "'" + variable.name + "' is too large");
    if (lexer.accept("=")) parseInitializer(lexer, variable);
    list.push_back(std::move(variable));
  } while (lexer.accept(","));
  lexer.expect(";");
  return list;
}

}  // namespace vgpu::emulator
