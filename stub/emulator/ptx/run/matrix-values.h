// Elements of matrices: their layout in registers, and their conversion to doubles for products.
//
// PTX leaves the order and precision of a product's sums open. Here every product of two elements is exact, sums are doubles, added in
// ascending order of k beginning with the accumulator, and the result is rounded once, to nearest even.
#pragma once

#include <optional>
#include <string_view>

#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

enum class Element : uint8_t { none, f16, bf16, tf32, f32, f64, s8, u8, s4, u4, s32, b1, e4m3, e5m2 };
std::optional<Element> findElement(std::string_view name);
inline uint32_t bitsOf(Element e) {
  constexpr uint8_t bits[] = {0, 16, 16, 32, 32, 64, 8, 8, 4, 4, 32, 1, 8, 8};  // in the order of Element
  return bits[static_cast<size_t>(e)];
}
// Number of elements in one register of a fragment.
inline uint32_t perRegister(Element e) { return e == Element::f64 ? 1 : 32 / bitsOf(e); }
inline bool isWhole(Element e) {
  return e == Element::s8 || e == Element::u8 || e == Element::s4 || e == Element::u4 || e == Element::s32 || e == Element::b1;
}
inline bool isFloat8(Element e) { return e == Element::e4m3 || e == Element::e5m2; }

double decode(Element, uint64_t raw);
// Decodes the elements in 32 bits (not f64), lowest first, to places `step` apart in `out`.
void decodeWord(Element, uint32_t word, double* out, size_t step);
// Integers wrap, or are clamped if `saturate`; a NaN becomes canonical.
uint64_t encode(Element, double value, bool saturate);

// Element `index` of `lane` in the registers from `slots` on, in `frame`.
template <class T>
T* registerAt(const std::byte* frame, int32_t slot, int lane) {
  return static_cast<T*>(static_cast<void*>(const_cast<std::byte*>(frame + slot))) + lane;
}
inline uint64_t rawElement(const std::byte* frame, const int32_t* slots, Element e, int lane, uint32_t index) {
  const uint32_t bits = bitsOf(e);
  if (bits == 32) return *registerAt<uint32_t>(frame, slots[index], lane);
  if (bits == 64) return *registerAt<uint64_t>(frame, slots[index], lane);
  return *registerAt<uint32_t>(frame, slots[index * bits / 32], lane) >> (index * bits % 32) & ((1u << bits) - 1);
}
inline void putRaw(std::byte* frame, const int32_t* slots, Element e, int lane, uint32_t index, uint64_t value) {
  const uint32_t bits = bitsOf(e);
  if (bits == 32) {
    *registerAt<uint32_t>(frame, slots[index], lane) = static_cast<uint32_t>(value);
  } else if (bits == 64) {
    *registerAt<uint64_t>(frame, slots[index], lane) = value;
  } else {
    const uint32_t shift = index * bits % 32, mask = ((1u << bits) - 1) << shift;
    uint32_t& word = *registerAt<uint32_t>(frame, slots[index * bits / 32], lane);
    word = (word & ~mask) | (static_cast<uint32_t>(value) << shift & mask);
  }
}
// The same as values. f32, the type of most accumulators, has a fast path.
inline double valueAt(const std::byte* frame, const int32_t* slots, Element e, int lane, uint32_t index) {
  if (e == Element::f32) return *registerAt<float>(frame, slots[index], lane);
  return decode(e, rawElement(frame, slots, e, lane, index));
}
inline void putValue(std::byte* frame, const int32_t* slots, Element e, int lane, uint32_t index, double value, bool saturate) {
  if (e == Element::f32 && value == value)
    *registerAt<float>(frame, slots[index], lane) = static_cast<float>(value);
  else
    putRaw(frame, slots, e, lane, index, encode(e, value, saturate));
}

// PTX ISA, "Matrix Fragments for mma": the position of element `index` of `lane` in a 16 x k, or 8 x k, matrix A: registers alternate
// between the upper and the lower eight rows, then continue along k.
struct Position {
  uint32_t row, column;
};
inline Position inA(Element e, int lane, uint32_t index, uint32_t rows) {
  const uint32_t per = perRegister(e), halves = rows / 8, r = index / per;
  const auto group = static_cast<uint32_t>(lane) / 4, member = static_cast<uint32_t>(lane) % 4;
  return {group + 8 * (r % halves), r / halves * 4 * per + member * per + index % per};
}
// The same for accumulators: two neighbours of the upper eight rows, two of the lower, then the next eight columns.
inline Position inAccumulator(int lane, uint32_t index, uint32_t rows) {
  const auto group = static_cast<uint32_t>(lane) / 4, member = static_cast<uint32_t>(lane) % 4;
  const uint32_t halves = rows / 8;
  return {group + 8 * (index / 2 % halves), index / 2 / halves * 8 + member * 2 + index % 2};
}

}  // namespace vgpu::emulator
