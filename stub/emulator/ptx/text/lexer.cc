#include "stub/emulator/ptx/text/lexer.h"

#include <array>

namespace vgpu::emulator {
namespace {

enum CharClass : uint8_t { kOther, kSpace, kLetter, kDigit };

constexpr std::array<uint8_t, 256> makeClasses() {
  std::array<uint8_t, 256> table{};
  for (char c : {' ', '\t', '\r', '\n', '\f', '\v', '\0'}) table[static_cast<uint8_t>(c)] = kSpace;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = kLetter;
  for (char c : {'_', '$', '%'}) table[static_cast<uint8_t>(c)] = kLetter;
  for (int c = '0'; c <= '9'; ++c) table[c] = kDigit;
  return table;
}

constexpr auto kClasses = makeClasses();

uint8_t classOf(char c) { return kClasses[static_cast<uint8_t>(c)]; }
bool isWordChar(char c) { return classOf(c) >= kLetter; }

[[noreturn]] void unterminated(int line, std::string_view what) {
  throw PtxError(PtxError::Kind::invalid, line, "the " + std::string(what) + " that begins here has no end");
}

}  // namespace

void Lexer::skipSpace() {
  const size_t size = text_.size();
  while (at_ < size) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (classOf(c) == kSpace) {
      ++at_;
    } else if (c == '/' && at_ + 1 < size && text_[at_ + 1] == '/') {
      at_ = std::min(text_.find('\n', at_), size);
    } else if (c == '/' && at_ + 1 < size && text_[at_ + 1] == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) unterminated(line_, "comment");
      for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), size);
    } else {
      return;
    }
  }
}

size_t Lexer::endOfWord() const {
  const bool modifier = text_[at_] == '.';
  size_t end = at_ + 1;
  while (end < text_.size()) {
    const char c = text_[end];
    if (isWordChar(c) || (c == '.' && !modifier)) {
      ++end;
    } else if (c == ':' && text_.substr(end, 2) == "::") {
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
  token.line = line_;
  if (at_ >= text_.size()) return token;
  const char c = text_[at_];
  size_t end = at_ + 1;
  if (classOf(c) == kLetter || (c == '.' && at_ + 1 < text_.size() && classOf(text_[at_ + 1]) == kLetter)) {
    token.kind = Token::Kind::word;
    end = endOfWord();
  } else if (classOf(c) == kDigit || c == '.') {
    token.kind = Token::Kind::number;
    const bool hexadecimal =
        c == '0' && end < text_.size() && std::string_view("xXfFdD").find(text_[end]) != std::string_view::npos;
    while (end < text_.size()) {
      const char d = text_[end], before = text_[end - 1];
      const bool exponentSign = !hexadecimal && (d == '-' || d == '+') && (before == 'e' || before == 'E');
      if (!isWordChar(d) && d != '.' && !exponentSign) break;
      ++end;
    }
  } else if (c == '"') {
    token.kind = Token::Kind::string;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size() || text_[end] != '"') unterminated(line_, "string");
    token.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return token;
  } else {
    token.kind = Token::Kind::punctuation;
    const std::string_view pair = text_.substr(at_, 2);
    for (std::string_view two : {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"})
      if (pair == two) end = at_ + 2;
  }
  token.text = text_.substr(at_, end - at_);
  at_ = end;
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
  const size_t begin = at_;
  const int beginLine = line_;
  for (int depth = 1; at_ < text_.size(); ++at_) {
    switch (text_[at_]) {
      case '\n':
        ++line_;
        break;
      case '{':
        ++depth;
        break;
      case '}':
        if (--depth == 0) return text_.substr(begin, at_++ - begin);
        break;
      case '/':
      case '#':
        skipSpace();
        if (at_ < text_.size() && text_[at_] != '/' && text_[at_] != '#') --at_;
        break;
      case '"':
        next();
        --at_;
        break;
      default:
        break;
    }
  }
  unterminated(beginLine, "block");
}

}  // namespace vgpu::emulator
