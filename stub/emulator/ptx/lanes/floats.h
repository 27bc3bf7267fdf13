// Float helpers of the lane operations. PTX's f32 instructions return the canonical NaN for any NaN operand.
#pragma once

#include "stub/emulator/ptx/lanes/lane-op.h"

namespace vgpu::emulator::VGPU_ISA {

template <class T>
struct BitsOf;
template <>
struct BitsOf<float> {
  using Type = uint32_t;
  static constexpr Type nanBits = 0x7fffffff, signBit = 0x80000000, quietBit = 0x00400000;
};
template <>
struct BitsOf<double> {
  using Type = uint64_t;
  static constexpr Type nanBits = 0x7fffffffffffffff, signBit = 0x8000000000000000, quietBit = 0x0008000000000000;
};

template <class T>
inline typename BitsOf<T>::Type bitsOf(T value) {
  return __builtin_bit_cast(typename BitsOf<T>::Type, value);
}
template <class T>
inline T fromBits(typename BitsOf<T>::Type bits) {
  return __builtin_bit_cast(T, bits);
}
template <class T>
inline bool isNan(T value) {
  return value != value;
}
template <class T>
inline T nan() {
  return fromBits<T>(BitsOf<T>::nanBits);
}
template <class T>
inline bool signOf(T value) {
  return (bitsOf(value) & BitsOf<T>::signBit) != 0;
}

inline float canonical(float value) { return isNan(value) ? nan<float>() : value; }
// f64 instructions keep a NaN operand's payload, like the host's; the host's default NaN has the sign bit set, PTX's has not.
inline double canonical(double value) { return value; }

inline float flush(float value) {
  const uint32_t bits = bitsOf(value);
  return (bits & 0x7f800000) == 0 ? fromBits<float>(bits & 0x80000000) : value;
}

inline float fusedMulAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fusedMulAdd(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Half precision is computed in float: every half is a float, and one float operation followed by one rounding to half gives the correctly
// rounded sum, difference and product (24 >= 2 * 11 + 2).
inline float toFloat(Half h) {
#ifdef __F16C__
  return __builtin_ia32_vcvtph2ps(__extension__(short __attribute__((vector_size(16)))){static_cast<short>(h.bits)})[0];
#else
  const uint32_t sign = uint32_t{h.bits & 0x8000u} << 16, rest = h.bits & 0x7fffu;
  if (rest >= 0x7c00) return fromBits<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  // Scaling a float that has the half's exponent field is exact, and handles subnormals without a branch.
  return fromBits<float>(sign | bitsOf(fromBits<float>(rest << 13) * fromBits<float>(0x77800000)));
#endif
}
inline float toFloat(Brain b) { return fromBits<float>(uint32_t{b.bits} << 16); }

enum class Rounding { nearest, zero, down, up };

// Rounds a double, taken as exact, to a float format of `Mantissa` explicit bits and `Exponent` exponent bits.
template <int Mantissa, int Exponent, Rounding Mode>
inline uint16_t narrow(double value) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  constexpr uint16_t infinity = static_cast<uint16_t>(((1 << Exponent) - 1) << Mantissa);
  const uint64_t bits = bitsOf(value);
  const auto sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  if (isNan(value)) return 0x7fff;
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  const bool away = Mode == Rounding::down ? sign != 0 : Mode == Rounding::up ? sign == 0 : false;
  if (exponent == 1024) return static_cast<uint16_t>(sign | infinity);
  if ((bits << 1) == 0) return sign;
  const uint64_t significand = (bits & 0xfffffffffffff) | uint64_t{exponent != -1023} << 52;
  // Number of bits to drop below the target's last place; more for its subnormals.
  const int shortfall = exponent < 1 - bias ? 1 - bias - exponent : 0;
  const int drop = 52 - Mantissa + shortfall;
  if (drop > 60) return static_cast<uint16_t>(sign | (away ? 1 : 0));
  const uint64_t kept = significand >> drop, rest = significand & ((uint64_t{1} << drop) - 1),
                 half = uint64_t{1} << (drop - 1);
  const bool up = Mode == Rounding::nearest ? rest > half || (rest == half && (kept & 1)) : away && rest != 0;
  // A carry out of the significand increments the exponent field, as required.
  const uint64_t field = (shortfall ? 0 : static_cast<uint64_t>(exponent + bias - 1) << Mantissa) + kept + up;
  if (field >= infinity) {
    const bool toInfinity = Mode == Rounding::nearest || away;
    return static_cast<uint16_t>(sign | (toInfinity ? infinity : infinity - 1));
  }
  return static_cast<uint16_t>(sign | field);
}

template <Rounding Mode = Rounding::nearest>
inline Half toHalf(double value) {
  return {narrow<10, 5, Mode>(value)};
}
template <Rounding Mode = Rounding::nearest>
inline Brain toBrain(double value) {
  return {narrow<7, 8, Mode>(value)};
}
template <class H>
inline H fromFloat(double value) {
  if constexpr (std::is_same_v<H, Half>)
    return toHalf(value);
  else
    return toBrain(value);
}

// a + b rounded to odd, so that a second rounding to a narrower format gives the same result as a single one (Boldo, Melquiond).
inline double addToOdd(double a, double b) {
  const double sum = a + b;
  const double back = sum - a;
  const double error = (a - (sum - back)) + (b - back);
  if (error == 0 || isNan(error) || (bitsOf(sum) & 1)) return sum;
  return fromBits<double>(bitsOf(sum) + ((error > 0) == (sum > 0) ? 1 : -1));
}

}  // namespace vgpu::emulator::VGPU_ISA
