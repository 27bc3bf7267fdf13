#include "stub/emulator/ptx/run/matrix-values.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "stub/emulator/ptx/lanes/half-values.h"

namespace vgpu::emulator {
namespace {

constexpr std::string_view elementNames[] = {"",   "f16", "bf16", "tf32", "f32", "f64",  "s8",
                                             "u8", "s4",  "u4",   "s32",  "b1",  "e4m3", "e5m2"};

// The value of a code in an 8-bit float format. e4m3 has no infinities and one NaN; e5m2 is the upper half of f16.
double float8Value(Element e, uint32_t code) {
  if (e == Element::e5m2) return halfValue(static_cast<uint16_t>(code << 8));
  const int size = static_cast<int>(code & 0x7f), exponent = size >> 3;
  if (size == 0x7f) return NAN;
  const double value = exponent == 0 ? std::ldexp(size, -9) : std::ldexp(8 + (size & 7), exponent - 10);
  return code & 0x80 ? -value : value;
}
std::array<double, 256> float8Values(Element e) {
  std::array<double, 256> values{};
  for (uint32_t code = 0; code < 256; ++code) values[code] = float8Value(e, code);
  return values;
}

}  // namespace

std::optional<Element> findElement(std::string_view name) {
  for (size_t i = 1; i < std::size(elementNames); ++i)
    if (elementNames[i] == name) return static_cast<Element>(i);
  return std::nullopt;
}

double decode(Element e, uint64_t raw) {
  switch (e) {
    case Element::f16:
      return halfValue(static_cast<uint16_t>(raw));
    case Element::bf16:
      return brainValue(static_cast<uint16_t>(raw));
    case Element::tf32:
      return std::bit_cast<float>(static_cast<uint32_t>(raw) & 0xffffe000);
    case Element::f32:
      return std::bit_cast<float>(static_cast<uint32_t>(raw));
    case Element::f64:
      return std::bit_cast<double>(raw);
    case Element::s8:
      return static_cast<int8_t>(raw);
    case Element::s4:
      return static_cast<int8_t>(raw << 4) >> 4;
    case Element::s32:
      return static_cast<int32_t>(raw);
    case Element::e4m3: {
      static const auto values = float8Values(Element::e4m3);
      return values[raw & 0xff];
    }
    case Element::e5m2: {
      static const auto values = float8Values(Element::e5m2);
      return values[raw & 0xff];
    }
    default:
      return static_cast<double>(raw);
  }
}

namespace {

// For normal numbers the fields are moved; the others take the general path.
double fastHalf(uint16_t bits) {
  const uint32_t exponent = bits >> 10 & 31;
  if (exponent == 0 || exponent == 31) return halfValue(bits);
  return std::bit_cast<double>(uint64_t{bits & 0x8000u} << 48 | uint64_t{exponent + 1008} << 52 | uint64_t{bits & 0x3ffu} << 42);
}

}  // namespace

void decodeWord(Element e, uint32_t word, double* out, size_t step) {
  const uint32_t bits = bitsOf(e);
  switch (e) {
    case Element::f16:
      out[0] = fastHalf(static_cast<uint16_t>(word));
      out[step] = fastHalf(static_cast<uint16_t>(word >> 16));
      return;
    case Element::bf16:
      out[0] = std::bit_cast<float>(word << 16);
      out[step] = std::bit_cast<float>(word & 0xffff0000);
      return;
    case Element::s8:
      for (uint32_t i = 0; i < 4; ++i) out[i * step] = static_cast<int8_t>(word >> 8 * i);
      return;
    case Element::u8:
      for (uint32_t i = 0; i < 4; ++i) out[i * step] = static_cast<uint8_t>(word >> 8 * i);
      return;
    default:
      for (uint32_t i = 0; i < 32 / bits; ++i)
        out[i * step] = decode(e, bits == 32 ? word : word >> bits * i & ((1u << bits) - 1));
  }
}

// Integers stay exact in a double: 256 products of 16 bits and a 32-bit sum are far below 2^53.
uint64_t encode(Element e, double value, bool saturate) {
  switch (e) {
    case Element::f16:
      return halfBits(value);
    case Element::f32:
      return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(static_cast<float>(value));
    case Element::s32: {
      if (saturate) value = std::fmin(std::fmax(value, -2147483648.0), 2147483647.0);
      return static_cast<uint32_t>(static_cast<int64_t>(value));
    }
    default:
      return std::bit_cast<uint64_t>(value);
  }
}

}  // namespace vgpu::emulator
