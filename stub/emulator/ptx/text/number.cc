#include "stub/emulator/ptx/text/number.h"

#include <bit>
#include <charconv>

namespace vgpu::emulator {
namespace {

[[noreturn]] void malformed(const Token& token) {
  throw PtxError(PtxError::Kind::invalid, token.line, "'" + std::string(token.text) + "' is not a number");
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

uint64_t parseDigits(const Token& token, std::string_view digits, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) malformed(token);
  return value;
}

// 'f' for 0f…, 'd' for 0d…, otherwise 0.
char bitPattern(const Token& token) {
  if (token.text.size() < 3 || token.text[0] != '0') return 0;
  const char kind = lower(token.text[1]);
  return kind == 'f' || kind == 'd' ? kind : '\0';
}

uint64_t parsePattern(const Token& token, size_t digits) {
  if (token.text.size() != digits + 2) malformed(token);
  return parseDigits(token, token.text.substr(2), 16);
}

}  // namespace

bool isFloatNumber(const Token& token) {
  if (token.kind != Token::Kind::number) return false;
  if (bitPattern(token)) return true;
  if (token.text.size() > 1 && token.text[0] == '0' && lower(token.text[1]) == 'x') return false;
  return token.text.find_first_of(".eE") != std::string_view::npos;
}

uint64_t parseWhole(const Token& token) {
  if (token.kind != Token::Kind::number) malformed(token);
  std::string_view text = token.text;
  if (text.size() > 1 && lower(text.back()) == 'u') text.remove_suffix(1);
  if (text.size() > 2 && text[0] == '0' && lower(text[1]) == 'x') return parseDigits(token, text.substr(2), 16);
  if (text.size() > 2 && text[0] == '0' && lower(text[1]) == 'b') return parseDigits(token, text.substr(2), 2);
  if (text.size() > 1 && text[0] == '0') return parseDigits(token, text.substr(1), 8);
  return parseDigits(token, text, 10);
}

double parseFloat(const Token& token) {
  switch (bitPattern(token)) {
    case 'f':
      return std::bit_cast<float>(static_cast<uint32_t>(parsePattern(token, 8)));
    case 'd':
      return std::bit_cast<double>(parsePattern(token, 16));
    default:
      break;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
  if (error != std::errc() || end != token.text.data() + token.text.size()) malformed(token);
  return value;
}

uint32_t floatBits(const Token& token) {
  if (bitPattern(token) == 'f') return static_cast<uint32_t>(parsePattern(token, 8));
  return std::bit_cast<uint32_t>(static_cast<float>(parseFloat(token)));
}

uint64_t doubleBits(const Token& token) {
  if (bitPattern(token) == 'd') return parsePattern(token, 16);
  return std::bit_cast<uint64_t>(parseFloat(token));
}

}  // namespace vgpu::emulator
