// Tokens of PTX text. A Lexer is a small value: copy it to look ahead.
#pragma once

#include <cstdint>
#include <string_view>

#include "stub/emulator/ptx/text/error.h"

namespace vgpu::emulator {

struct Token {
  enum class Kind : uint8_t { end, word, number, string, punctuation };
  Kind kind = Kind::end;
  std::string_view text;  // a string's text has no quotes
  int line = 0;

  bool is(std::string_view what) const { return text == what && kind != Kind::string; }
};

// A word is an identifier, a register (`%tid.x`), an opcode with its modifiers (`ld.shared::cta.u32`), or, if it
// begins with a dot, one directive or modifier (`.reg`).
class Lexer {
 public:
  explicit Lexer(std::string_view text, int line = 1) : text(text), currentLine(line) {}

  Token next();
  Token peek() const;
  bool accept(std::string_view what);
  Token expect(std::string_view what);
  Token expectWord(std::string_view what);
  bool atEnd() const { return peek().kind == Token::Kind::end; }

  // Skips the rest of the line on which `token` stands: `.loc` and `.file` end with their line.
  void skipLine(const Token& token);
  // The text up to the brace that closes the block whose `{` was just read; consumes the closing brace.
  std::string_view skipBlock();

  int line() const { return currentLine; }
  size_t position() const { return at; }

 private:
  void skipSpace();
  size_t endOfWord() const;

  std::string_view text;
  size_t at = 0;
  int currentLine;
};

}  // namespace vgpu::emulator
