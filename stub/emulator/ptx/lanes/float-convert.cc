// Conversions from float32 and float64, and between the float formats.
#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

enum class Whole { nearest, zero, down, up };

template <Whole Mode>
double toWhole(double a) {
  if constexpr (Mode == Whole::nearest)
    return __builtin_nearbyint(a);  // the host's mode is round to nearest even
  else if constexpr (Mode == Whole::zero)
    return __builtin_trunc(a);
  else if constexpr (Mode == Whole::down)
    return __builtin_floor(a);
  else
    return __builtin_ceil(a);
}
template <Whole Mode>
float toWhole(float a) {
  if constexpr (Mode == Whole::nearest)
    return __builtin_nearbyintf(a);
  else if constexpr (Mode == Whole::zero)
    return __builtin_truncf(a);
  else if constexpr (Mode == Whole::down)
    return __builtin_floorf(a);
  else
    return __builtin_ceilf(a);
}

// The range of To in powers of two, which every float format represents exactly.
template <class To>
constexpr double limit = std::is_signed_v<To> ? static_cast<double>(uint64_t{1} << (sizeof(To) * 8 - 1))
                                              : 2.0 * static_cast<double>(uint64_t{1} << (sizeof(To) * 8 - 1));
template <class To>
constexpr To mostValue = static_cast<To>(~(std::is_signed_v<To> ? std::make_unsigned_t<To>{1} << (sizeof(To) * 8 - 1)
                                                                : std::make_unsigned_t<To>{0}));
template <class To>
constexpr To leastValue = std::is_signed_v<To> ? static_cast<To>(-mostValue<To> - 1) : To{0};
// The result for a NaN, as on hardware: 0 from f32 to 32 bits or fewer; otherwise only the highest bit is set (the most negative value if
// signed).
template <class To, class From>
constexpr To fromNan = sizeof(To) == 8 || sizeof(From) == 8
                           ? static_cast<To>(std::make_unsigned_t<To>{1} << (sizeof(To) * 8 - 1))
                           : To{0};

// Clamps values that are out of range.
template <Whole Mode, class To, class From>
To toInteger(From a) {
  const From whole = toWhole<Mode>(a);
  if (isNan(a)) return fromNan<To, From>;
  if (whole >= static_cast<From>(limit<To>)) return mostValue<To>;
  if (whole < static_cast<From>(leastValue<To>)) return leastValue<To>;
  return static_cast<To>(whole);
}

// A signalling NaN becomes quiet, as in any sum.
template <Whole Mode, class T>
T round(T a) {
  return isNan(a) ? canonical(a + a) : toWhole<Mode>(a);
}
float narrow64(double a) { return static_cast<float>(a); }  // a NaN keeps the upper part of its payload
double widen32(float a) { return a; }
float copy32(float a) { return a; }
double copy64(double a) { return a; }

template <Whole Mode, class To>
void integer(Registry& r, const char* family, const char* from32, const char* from64) {
  r.add(family, from32, row<toInteger<Mode, To, float>>());
  r.add(family, from64, row<toInteger<Mode, To, double>>());
}

template <Whole Mode>
void mode(Registry& r, const char* family) {
  integer<Mode, uint8_t>(r, family, "u8.f32", "u8.f64");
  integer<Mode, uint16_t>(r, family, "u16.f32", "u16.f64");
  integer<Mode, uint32_t>(r, family, "u32.f32", "u32.f64");
  integer<Mode, uint64_t>(r, family, "u64.f32", "u64.f64");
  integer<Mode, int8_t>(r, family, "s8.f32", "s8.f64");
  integer<Mode, int16_t>(r, family, "s16.f32", "s16.f64");
  integer<Mode, int32_t>(r, family, "s32.f32", "s32.f64");
  integer<Mode, int64_t>(r, family, "s64.f32", "s64.f64");
  r.add(family, "f32.f32", row<round<Mode, float>>());
  r.add(family, "f64.f64", row<round<Mode, double>>());
}

// Half and bfloat16: from floats with each rounding, and to floats exactly.
template <Rounding Mode, class T>
Half halfFrom(T a) {
  if constexpr (sizeof(T) == 8)
    if (isNan(a)) return {static_cast<uint16_t>((bitsOf(a) >> 48 & 0x8000) | 0x7e00 | (bitsOf(a) >> 42 & 0x3ff))};
  return toHalf<Mode>(a);
}
template <Rounding Mode, class T>
Brain brainFrom(T a) {
  if constexpr (sizeof(T) == 8)
    if (isNan(a)) return {static_cast<uint16_t>((bitsOf(a) >> 48 & 0x8000) | 0x7fc0 | (bitsOf(a) >> 45 & 0x7f))};
  return toBrain<Mode>(a);
}
float floatFromHalf(Half a) { return canonical(toFloat(a)); }
double doubleFromHalf(Half a) { return toFloat(a); }
float floatFromBrain(Brain a) { return toFloat(a); }
double doubleFromBrain(Brain a) { return toFloat(a); }
Half reluHalf(Half a) { return (a.bits & 0x8000) && (a.bits & 0x7fff) <= 0x7c00 ? Half{0} : a; }
Brain reluBrain(Brain a) { return (a.bits & 0x8000) && (a.bits & 0x7fff) <= 0x7f80 ? Brain{0} : a; }
float reluFloat(float a) { return isNan(a) ? nan<float>() : a > 0 ? a : 0.0f; }

// tf32 keeps 10 bits of the significand in a 32-bit register, also of the canonical NaN; rna rounds ties away from zero.
constexpr uint32_t tf32Nan = 0x7fffe000;
uint32_t tf32Away(float a) {
  return ((bitsOf(a) & 0x7f800000) == 0x7f800000 ? bitsOf(a) : bitsOf(a) + 0x1000) & 0xffffe000;
}
uint32_t tf32Nearest(float a) {
  if (isNan(a)) return tf32Nan;
  return (bitsOf(a) + 0xfff + ((bitsOf(a) >> 13) & 1)) & 0xffffe000;
}
uint32_t tf32Finite(float a) { return (bitsOf(a) & 0x7fffffff) == 0x7f800000 ? bitsOf(a) - 0x2000 : bitsOf(a); }
uint32_t tf32Zero(float a) { return isNan(a) ? tf32Nan : bitsOf(a) & 0xffffe000; }
uint32_t tf32Relu(float a) { return isNan(a) ? tf32Nan : a > 0 ? bitsOf(a) : 0; }

// A 64-bit integer as a double, rounded to odd: a second rounding gives the same result as a single one.
double oddDouble(uint64_t a) {
  if (a >> 53) a = (a & ~uint64_t{0x7ff}) | uint64_t{(a & 0x7ff) != 0} << 11;
  return static_cast<double>(a);
}
template <Rounding Mode>
Half halfFromU64(uint64_t a) {
  return toHalf<Mode>(oddDouble(a));
}
template <Rounding Mode>
Half halfFromS64(int64_t a) {
  return toHalf<Mode>(a < 0 ? -oddDouble(0 - static_cast<uint64_t>(a)) : oddDouble(static_cast<uint64_t>(a)));
}
template <Rounding Mode>
Brain brainFromU64(uint64_t a) {
  return toBrain<Mode>(oddDouble(a));
}
template <Rounding Mode>
Brain brainFromS64(int64_t a) {
  return toBrain<Mode>(a < 0 ? -oddDouble(0 - static_cast<uint64_t>(a)) : oddDouble(static_cast<uint64_t>(a)));
}

template <Rounding Mode>
void halves(Registry& r, const char* family) {
  r.add(family, "f16.f32", row<halfFrom<Mode, float>>());
  r.add(family, "f16.f64", row<halfFrom<Mode, double>>());
  r.add(family, "bf16.f32", row<brainFrom<Mode, float>>());
  r.add(family, "bf16.f64", row<brainFrom<Mode, double>>());
  r.add(family, "f16.u64", row<halfFromU64<Mode>>());
  r.add(family, "f16.s64", row<halfFromS64<Mode>>());
  r.add(family, "bf16.u64", row<brainFromU64<Mode>>());
  r.add(family, "bf16.s64", row<brainFromS64<Mode>>());
}

}  // namespace

void addFloatConvertOps(Registry& r) {
  mode<Whole::nearest>(r, "cvt.rni");
  mode<Whole::zero>(r, "cvt.rzi");
  mode<Whole::down>(r, "cvt.rmi");
  mode<Whole::up>(r, "cvt.rpi");
  halves<Rounding::nearest>(r, "cvt.rn");
  halves<Rounding::zero>(r, "cvt.rz");
  halves<Rounding::down>(r, "cvt.rm");
  halves<Rounding::up>(r, "cvt.rp");
  r.add("cvt.rn", "f32.f64", row<narrow64>());
  r.add("cvt", "f64.f32", row<widen32>());
  r.add("cvt", "f32.f32", row<copy32>());
  r.add("cvt", "f64.f64", row<copy64>());
  r.add("cvt", "f32.f16", row<floatFromHalf>());
  r.add("cvt", "f64.f16", row<doubleFromHalf>());
  r.add("cvt", "f32.bf16", row<floatFromBrain>());
  r.add("cvt", "f64.bf16", row<doubleFromBrain>());
  r.add("cvt.rna", "tf32.f32", row<tf32Away>());
  r.add("cvt.rn", "tf32.f32", row<tf32Nearest>());
  r.add("cvt.rz", "tf32.f32", row<tf32Zero>());
  r.add("satfinite", "tf32", row<tf32Finite>());
  r.add("relu", "tf32", row<tf32Relu>());
  r.add("relu", "f16", row<reluHalf>());
  r.add("relu", "bf16", row<reluBrain>());
  r.add("relu", "f32", row<reluFloat>());
}

}  // namespace vgpu::emulator::VGPU_ISA
