#include "stub/emulator/ptx/text/lexer.h"

#include <array>

namespace vgpu::emulator {
namespace {

enum CharClass : uint8_t { otherChar, spaceChar, letterChar, digitChar };

constexpr std::array<uint8_t, 256> makeClasses() {
  std::array<uint8_t, 256> table{};
  for (char c : {' ', '\t', '\r', '\n', '\f', '\v', '\0'}) table[static_cast<uint8_t>(c)] = spaceChar;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = letterChar;
  for (char c : {'_', '$', '%'}) table[static_cast<uint8_t>(c)] = letterChar;
  for (int c = '0'; c <= '9'; ++c) table[c] = digitChar;
  return table;
}

constexpr auto charClasses = makeClasses();

uint8_t classOf(char c) { return charClasses[static_cast<uint8_t>(c)]; }
bool isWordChar(char c) { return classOf(c) >= letterChar; }

[[noreturn]] void unterminated(int line, std::string_view what) {
  throw PtxError(PtxError::Kind::invalid, line, "the " + std::string(what) + " that begins here has no end");
}

}  // namespace

void Lexer::skipSpace() {
  const size_t size = text.size();
  while (at < size) {
    const char c = text[at];
    if (c == '\n') ++currentLine;
    if (classOf(c) == spaceChar) {
      ++at;
    } else if (c == '/' && at + 1 < size && text[at + 1] == '/') {
      at = std::min(text.find('\n', at), size);
    } else if (c == '/' && at + 1 < size && text[at + 1] == '*') {
      const size_t end = text.find("*/", at + 2);
      if (end == std::string_view::npos) unterminated(currentLine, "comment");
      for (; at < end + 2; ++at) currentLine += text[at] == '\n';
    } else if (c == '#') {
      at = std::min(text.find('\n', at), size);
    } else {
      return;
    }
  }
}

size_t Lexer::endOfWord() const {
  const bool modifier = text[at] == '.';
  size_t end = at + 1;
  while (end < text.size()) {
    const char c = text[end];
    if (isWordChar(c) || (c == '.' && !modifier)) {
      ++end;
    } else if (c == ':' && text.substr(end, 2) == "::") {
      end += 2;
    } else {
      break;
    }
  }
  return end;
}

Token Lexer::next() {
  skipSpace();
  Token token;
  token.line = currentLine;
  if (at >= text.size()) return token;
  const char c = text[at];
  size_t end = at + 1;
  // A '%' alone is the operator.
  const bool isRemainder = c == '%' && (end >= text.size() || !isWordChar(text[end]));
  if ((classOf(c) == letterChar && !isRemainder) || (c == '.' && at + 1 < text.size() && classOf(text[at + 1]) == letterChar)) {
    token.kind = Token::Kind::word;
    end = endOfWord();
  } else if (classOf(c) == digitChar || c == '.') {
    token.kind = Token::Kind::number;
    const bool hexadecimal =
        c == '0' && end < text.size() && std::string_view("xXfFdD").find(text[end]) != std::string_view::npos;
    while (end < text.size()) {
      const char d = text[end], before = text[end - 1];
      const bool exponentSign = !hexadecimal && (d == '-' || d == '+') && (before == 'e' || before == 'E');
      if (!isWordChar(d) && d != '.' && !exponentSign) break;
      ++end;
    }
  } else if (c == '"') {
    token.kind = Token::Kind::string;
    while (end < text.size() && text[end] != '"' && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size() || text[end] != '"') unterminated(currentLine, "string");
    token.text = text.substr(at + 1, end - at - 1);
    at = end + 1;
    return token;
  } else {
    token.kind = Token::Kind::punctuation;
    const std::string_view pair = text.substr(at, 2);
    for (std::string_view two : {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"})
      if (pair == two) end = at + 2;
  }
  token.text = text.substr(at, end - at);
  at = end;
  return token;
}

Token Lexer::peek() const {
  Lexer ahead = *this;
  return ahead.next();
}

bool Lexer::accept(std::string_view what) {
  Lexer ahead = *this;
  if (!ahead.next().is(what)) return false;
  *this = ahead;
  return true;
}

Token Lexer::expect(std::string_view what) {
  const Token token = next();
  if (token.is(what)) return token;
  const std::string found =
      token.kind == Token::Kind::end ? "the end of the text" : "'" + std::string(token.text) + "'";
  throw PtxError(PtxError::Kind::invalid, token.line, "expected '" + std::string(what) + "', found " + found);
}

Token Lexer::expectWord(std::string_view what) {
  const Token token = next();
  if (token.kind == Token::Kind::word) return token;
  throw PtxError(PtxError::Kind::invalid, token.line,
                 "expected " + std::string(what) + ", found '" + std::string(token.text) + "'");
}

void Lexer::skipLine(const Token& token) {
  while (true) {
    Lexer ahead = *this;
    const Token following = ahead.next();
    if (following.kind == Token::Kind::end || following.line != token.line) return;
    *this = ahead;
  }
}

std::string_view Lexer::skipBlock() {
  const size_t begin = at;
  const int beginLine = currentLine;
  for (int depth = 1; at < text.size(); ++at) {
    switch (text[at]) {
      case '\n':
        ++currentLine;
        break;
      case '{':
        ++depth;
        break;
      case '}':
        if (--depth == 0) return text.substr(begin, at++ - begin);
        break;
      case '/':
      case '#':
        skipSpace();
        if (at < text.size() && text[at] != '/' && text[at] != '#') --at;
        break;
      case '"':
        next();
        --at;
        break;
      default:
        break;
    }
  }
  unterminated(beginLine, "block");
}

}  // namespace vgpu::emulator
