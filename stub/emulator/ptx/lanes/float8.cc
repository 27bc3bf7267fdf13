// Pairs of floats of 8 bits and fewer: e4m3 (no infinities, one NaN), e5m2; e2m3, e3m2 and e2m1 (no infinities, no NaNs); and ue8m0 (an
// exponent only: a power of two). A 6-bit float (e2m3, e3m2) takes the lower bits of a byte, whose other bits are zero.
#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

struct E4m3 {
  static constexpr int mantissaBits = 3, leastExponent = -6;
  static constexpr uint32_t mostValue = 0x7e, nan = 0x7f, sign = 0x80;  // 448
};
struct E5m2 {
  static constexpr int mantissaBits = 2, leastExponent = -14;
  static constexpr uint32_t mostValue = 0x7b, nan = 0x7f, sign = 0x80;  // 57344
};
// The formats without a NaN: a NaN becomes the largest value (PTX ISA, cvt).
struct E2m3 {
  static constexpr int mantissaBits = 3, leastExponent = 0;
  static constexpr uint32_t mostValue = 0x1f, nan = 0x1f, sign = 0x20;  // 7.5
};
struct E3m2 {
  static constexpr int mantissaBits = 2, leastExponent = -2;
  static constexpr uint32_t mostValue = 0x1f, nan = 0x1f, sign = 0x20;  // 28
};
struct E2m1 {
  static constexpr int mantissaBits = 1, leastExponent = 0;
  static constexpr uint32_t mostValue = 0x7, nan = 0x7, sign = 0x8;  // 6
};

// Rounds to nearest even; too large values become the largest finite one, a NaN the canonical one.
template <class F, bool Relu>
uint32_t narrowed(float value) {
  if (isNan(value)) return F::nan;
  if (Relu && signOf(value)) return 0;
  const uint32_t sign = signOf(value) ? F::sign : 0;
  const double size = fromBits<double>(bitsOf(double{value}) & ~BitsOf<double>::signBit);
  const int own = static_cast<int>(bitsOf(size) >> 52) - 1023;
  if (own > 15) return sign | F::mostValue;
  const int exponent = own < F::leastExponent ? F::leastExponent : own;
  // Scaled to units of the last place, exact before the rounding. A subnormal has exponent field 0 and no hidden bit, so for other numbers
  // the hidden bit adds one to the exponent field.
  const double unit = fromBits<double>(static_cast<uint64_t>(1023 + F::mantissaBits - exponent) << 52);
  const auto places = static_cast<uint32_t>(__builtin_rint(size * unit));
  const uint32_t code = (static_cast<uint32_t>(exponent - F::leastExponent) << F::mantissaBits) + places;
  return sign | (code > F::mostValue ? F::mostValue : code);
}

// A half represents every value of either format.
template <class F, bool Relu>
uint16_t widened(uint32_t code) {
  const uint32_t size = code & 0x7f;
  const bool negative = (code & 0x80) != 0;
  if (size > (F::mantissaBits == 3 ? 0x7eu : 0x7cu)) return 0x7fff;
  if (Relu && negative) return 0;
  if (F::mantissaBits == 2) return static_cast<uint16_t>(code << 8);
  const double value =
      size < 8 ? size * 0x1p-9
               : fromBits<double>(static_cast<uint64_t>((size >> 3) - 7 + 1023) << 52) * (1 + (size & 7) * 0.125);
  return static_cast<uint16_t>(toHalf(value).bits | (negative ? 0x8000 : 0));
}

template <class F, bool Relu>
uint16_t fromFloats(float hi, float lo) {
  return static_cast<uint16_t>(narrowed<F, Relu>(hi) << 8 | narrowed<F, Relu>(lo));
}
template <class F, bool Relu>
uint16_t fromHalves(Half2 pair) {
  const Half hi{static_cast<uint16_t>(pair.bits >> 16)}, lo{static_cast<uint16_t>(pair.bits)};
  return fromFloats<F, Relu>(toFloat(hi), toFloat(lo));
}
template <class F, bool Relu>
Half2 toHalves(uint16_t pair) {
  return {uint32_t{widened<F, Relu>(pair >> 8)} << 16 | widened<F, Relu>(pair & 0xff)};
}

template <class F, bool Relu>
void add(Registry& r, const char* to, const char* from, const char* floats, const char* halves, const char* back) {
  r.add(to, floats, row<fromFloats<F, Relu>>());
  r.add(to, halves, row<fromHalves<F, Relu>>());
  r.add(from, back, row<toHalves<F, Relu>>());
}
template <bool Relu>
void addBoth(Registry& r, const char* to, const char* from) {
  add<E4m3, Relu>(r, to, from, "e4m3x2.f32", "e4m3x2.f16x2", "f16x2.e4m3x2");
  add<E5m2, Relu>(r, to, from, "e5m2x2.f32", "e5m2x2.f16x2", "f16x2.e5m2x2");
}

template <class F, bool Relu>
uint16_t widenedSmall(uint32_t code) {
  constexpr uint32_t hidden = 1u << F::mantissaBits;
  const uint32_t size = code & (F::sign - 1), fraction = size & (hidden - 1);
  const bool negative = (code & F::sign) != 0;
  if (Relu && negative) return 0;
  const auto powerOfTwo = [](int exponent) { return fromBits<double>(static_cast<uint64_t>(1023 + exponent) << 52); };
  const double unit = powerOfTwo(F::leastExponent - F::mantissaBits);
  const int exponent = static_cast<int>(size >> F::mantissaBits);
  const double value = exponent ? (hidden + fraction) * unit * powerOfTwo(exponent - 1) : fraction * unit;
  return static_cast<uint16_t>(toHalf(value).bits | (negative ? 0x8000 : 0));
}
template <class F, bool Relu>
Half2 toHalvesSmall(uint16_t pair) {
  return {uint32_t{widenedSmall<F, Relu>(pair >> 8)} << 16 | widenedSmall<F, Relu>(pair & 0xff)};
}
template <bool Relu>
uint8_t fourBits(float hi, float lo) {
  return static_cast<uint8_t>(narrowed<E2m1, Relu>(hi) << 4 | narrowed<E2m1, Relu>(lo));
}
template <bool Relu>
Half2 fromFourBits(uint8_t pair) {
  return {uint32_t{widenedSmall<E2m1, Relu>(pair >> 4)} << 16 | widenedSmall<E2m1, Relu>(pair & 0xf)};
}
template <bool Relu>
void addSmall(Registry& r, const char* to, const char* from) {
  r.add(to, "e2m3x2.f32", row<fromFloats<E2m3, Relu>>());
  r.add(to, "e3m2x2.f32", row<fromFloats<E3m2, Relu>>());
  r.add(to, "e2m1x2.f32", row<fourBits<Relu>>());
  r.add(from, "f16x2.e2m3x2", row<toHalvesSmall<E2m3, Relu>>());
  r.add(from, "f16x2.e3m2x2", row<toHalvesSmall<E3m2, Relu>>());
  r.add(from, "f16x2.e2m1x2", row<fromFourBits<Relu>>());
}

// The ue8m0 code of a value, rounded up or towards zero: 0 (2^-127) to 254 (2^127); 255 is a NaN. The sign is dropped. A value below 2^-127
// becomes code 0; one too large becomes 254 if `Finite`, else the NaN.
template <bool Up, bool Finite>
uint32_t exponentOf(float value) {
  const uint32_t size = bitsOf(value) & 0x7fffffff;
  if (size > 0x7f800000) return 0xff;
  if (size == 0x7f800000) return Finite ? 0xfe : 0xff;
  // A subnormal is below 2^-126. It is above 2^-127, and so rounds up to code 1, if its fraction is above 0x400000.
  const uint32_t exponent = size >> 23, fraction = size & 0x7fffff;
  const bool further = exponent ? fraction != 0 : fraction > 0x400000;
  const uint32_t rounded = exponent + (Up && further);
  return rounded == 0xff && Finite ? 0xfe : rounded;
}
template <bool Up, bool Finite>
uint16_t exponents(float hi, float lo) {
  return static_cast<uint16_t>(exponentOf<Up, Finite>(hi) << 8 | exponentOf<Up, Finite>(lo));
}
template <bool Up, bool Finite>
uint16_t exponentsOfBrains(Brain2 pair) {
  return exponents<Up, Finite>(fromBits<float>(pair.bits & 0xffff0000), fromBits<float>(pair.bits << 16));
}
uint32_t powerOf(uint32_t code) { return code == 0xff ? 0x7fff : code == 0 ? 0x40 : code << 7; }  // its value as a bfloat16
Brain2 powersOf(uint16_t pair) { return {powerOf(pair >> 8) << 16 | powerOf(pair & 0xff)}; }
template <bool Up, bool Finite>
void addExponents(Registry& r, const char* to) {
  r.add(to, "ue8m0x2.f32", row<exponents<Up, Finite>>());
  r.add(to, "ue8m0x2.bf16x2", row<exponentsOfBrains<Up, Finite>>());
}

}  // namespace

void addFloat8Ops(Registry& r) {
  addSmall<false>(r, "cvt.rn.satfinite", "cvt.rn");
  addSmall<true>(r, "cvt.rn.satfinite.relu", "cvt.rn.relu");
  addExponents<false, false>(r, "cvt.rz");
  addExponents<false, true>(r, "cvt.rz.satfinite");
  addExponents<true, false>(r, "cvt.rp");
  addExponents<true, true>(r, "cvt.rp.satfinite");
  r.add("cvt.rn", "bf16x2.ue8m0x2", row<powersOf>());
  addBoth<false>(r, "cvt.rn.satfinite", "cvt.rn");
  addBoth<true>(r, "cvt.rn.satfinite.relu", "cvt.rn.relu");
}

}  // namespace vgpu::emulator::VGPU_ISA
