#include "tools/common/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace vgpu {
namespace {

struct Character {
  uint32_t code;
  size_t bytes;  // 0 if it is not valid UTF-8
};

// The character at the start of `text`, decoded by RFC 3629, which excludes overlong forms and surrogates.
Character decode(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {lead, 0};
  uint32_t code = lead & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 0};
    code = code << 6 | (byte(i) & 0x3f);
  }
  static constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  bool valid = code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return {code, valid ? bytes : 0};
}

bool isPlain(uint32_t code) {
  static constexpr std::pair<uint32_t, uint32_t> others[] = {
      {0, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
  for (auto [first, last] : others)
    if (code >= first && code <= last) return false;
  return true;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto [code, bytes] = decode(text);
    size_t taken = bytes == 0 ? 1 : bytes;
    if (bytes > 0 && isPlain(code)) {
      result += text.substr(0, taken);
    } else if (code == '\n' || code == '\t') {
      result += code == '\n' ? "\\n" : "\\t";
    } else {
      for (unsigned char byte : text.substr(0, taken)) result += fmt::format("\\x{:02x}", byte);
    }
    text.remove_prefix(taken);
  }
  return result;
}

}  // namespace vgpu
