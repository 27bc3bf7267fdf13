// Matrices of small integers in any element type, for tests of matrix instructions: all sums are exact in any order.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::emulator {

// An element type: exponent and mantissa bits of a float, or 0 exponent bits for an integer.
struct ElementType {
  std::string_view name;
  uint32_t bits;
  int exponentBits, mantissaBits;
  int least, most;  // range of values that tests use
};
constexpr ElementType elementTypes[] = {{"f16", 16, 5, 10, -4, 4}, {"bf16", 16, 8, 7, -4, 4}, {"tf32", 32, 8, 23, -4, 4},
                                        {"f32", 32, 8, 23, 0, 0},  {"e4m3", 8, 4, 3, -4, 4},  {"e5m2", 8, 5, 2, -4, 4},
                                        {"s8", 8, 0, 0, -9, 9},    {"u8", 8, 0, 0, 0, 200},   {"s32", 32, 0, 0, 0, 0},
                                        {"b1", 1, 0, 0, 0, 1},     {"s4", 4, 0, 0, -8, 7},    {"u4", 4, 0, 0, 0, 15}};

inline const ElementType& elementType(std::string_view name) {
  for (const ElementType& type : elementTypes)
    if (type.name == name) return type;
  throw std::invalid_argument(std::string(name));
}

// The bits of an integer in this type.
inline uint32_t bitsOf(const ElementType& type, int value) {
  if (type.exponentBits == 0) return static_cast<uint32_t>(value) & (type.bits == 32 ? ~0u : (1u << type.bits) - 1);
  if (value == 0) return 0;
  const auto size = static_cast<uint32_t>(value < 0 ? -value : value);
  const int top = 31 - __builtin_clz(size), bias = (1 << (type.exponentBits - 1)) - 1;
  const uint32_t mantissa = top <= type.mantissaBits ? size << (type.mantissaBits - top) : size >> (top - type.mantissaBits);
  return uint32_t{value < 0} << (type.exponentBits + type.mantissaBits) | static_cast<uint32_t>(top + bias) << type.mantissaBits |
         (mantissa & ((1u << type.mantissaBits) - 1));
}

// The integer that these bits represent.
inline int valueOf(const ElementType& type, uint32_t bits) {
  if (type.exponentBits == 0) return static_cast<int>(bits);
  const uint32_t magnitude = bits & ((1u << (type.exponentBits + type.mantissaBits)) - 1);
  if (magnitude == 0) return 0;
  const int exponent = static_cast<int>(magnitude >> type.mantissaBits) - ((1 << (type.exponentBits - 1)) - 1);
  const uint32_t mantissa = (magnitude & ((1u << type.mantissaBits) - 1)) | 1u << type.mantissaBits;
  const int size = exponent <= type.mantissaBits ? static_cast<int>(mantissa >> (type.mantissaBits - exponent))
                                                 : static_cast<int>(mantissa << (exponent - type.mantissaBits));
  return bits >> (type.exponentBits + type.mantissaBits) ? -size : size;
}

struct Matrix {
  uint32_t rows, columns;
  std::vector<int> values;  // row by row
  int& at(uint32_t row, uint32_t column) { return values[size_t{row} * columns + column]; }
  int at(uint32_t row, uint32_t column) const { return values[size_t{row} * columns + column]; }
};

inline Matrix randomMatrix(uint32_t rows, uint32_t columns, int least, int most, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix matrix{rows, columns, std::vector<int>(size_t{rows} * columns)};
  for (int& value : matrix.values) value = least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
  return matrix;
}

// c + a b
inline Matrix multiply(const Matrix& a, const Matrix& b, const Matrix& c) {
  Matrix d = c;
  for (uint32_t i = 0; i < d.rows; ++i)
    for (uint32_t j = 0; j < d.columns; ++j)
      for (uint32_t k = 0; k < a.columns; ++k) d.at(i, j) += a.at(i, k) * b.at(k, j);
  return d;
}

// Stores an element at a bit position of a buffer.
inline void putBits(std::vector<uint8_t>& buffer, size_t bit, uint32_t bits, uint32_t value) {
  for (uint32_t i = 0; i < bits; ++i) {
    const size_t at = bit + i;
    buffer[at / 8] = static_cast<uint8_t>((buffer[at / 8] & ~(1u << at % 8)) | (value >> i & 1) << at % 8);
  }
}
inline uint32_t getBits(const std::vector<uint8_t>& buffer, size_t bit, uint32_t bits) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < bits; ++i) value |= uint32_t{buffer[(bit + i) / 8] >> (bit + i) % 8 & 1u} << i;
  return value;
}

// "{%d0, %d1, …}"
inline std::string listOf(const char* prefix, uint32_t count) {
  std::string text = "{";
  for (uint32_t i = 0; i < count; ++i) {
    if (i) text += ", ";
    text += prefix + std::to_string(i);
  }
  return text += "}";
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16" and similar: row and column of element `index` of `lane`, in an A of 16 rows or in
// accumulators.
inline std::pair<uint32_t, uint32_t> fragmentOfA(uint32_t lane, uint32_t index, uint32_t bits) {
  const uint32_t per = 32 / bits, word = index / per;
  return {lane / 4 + (word % 2 ? 8 : 0), (word / 2) * 4 * per + lane % 4 * per + index % per};
}
inline std::pair<uint32_t, uint32_t> fragmentOfD(uint32_t lane, uint32_t index) {
  return {lane / 4 + (index % 4 >= 2 ? 8 : 0), index / 4 * 8 + lane % 4 * 2 + index % 2};
}

}  // namespace vgpu::emulator
