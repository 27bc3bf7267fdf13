// The 8-bit float formats, two in a register: e4m3 (no infinities, one NaN) and e5m2.
#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

struct E4m3 {
  static constexpr int mantissaBits = 3, leastExponent = -6;
  static constexpr uint32_t mostValue = 0x7e;  // 448
};
struct E5m2 {
  static constexpr int mantissaBits = 2, leastExponent = -14;
  static constexpr uint32_t mostValue = 0x7b;  // 57344
};
constexpr uint32_t nan8 = 0x7f;

// Rounds to nearest even; too large values become the largest finite one, a NaN the canonical one.
template <class F, bool Relu>
uint32_t narrowed(float value) {
  if (isNan(value)) return nan8;
  if (Relu && signOf(value)) return 0;
  const uint32_t sign = signOf(value) ? 0x80 : 0;
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

}  // namespace

void addFloat8Ops(Registry& r) {
  addBoth<false>(r, "cvt.rn.satfinite", "cvt.rn");
  addBoth<true>(r, "cvt.rn.satfinite.relu", "cvt.rn.relu");
}

}  // namespace vgpu::emulator::VGPU_ISA
