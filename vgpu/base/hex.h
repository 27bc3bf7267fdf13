// Bytes as text in hexadecimal, for the tables of a snapshot.
#pragma once

#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace vgpu {

inline std::string hexOf(std::span<const std::byte> bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (std::byte byte : bytes) {
    text += digits[static_cast<unsigned>(byte) >> 4];
    text += digits[static_cast<unsigned>(byte) & 0xf];
  }
  return text;
}

inline bool isHex(const std::string& text) {
  return text.size() % 2 == 0 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// `hex` must be a text for which isHex() is true.
inline std::vector<std::byte> bytesOf(const std::string& hex) {
  std::vector<std::byte> bytes(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, value, 16);
    bytes[i] = static_cast<std::byte>(value);
  }
  return bytes;
}

}  // namespace vgpu
