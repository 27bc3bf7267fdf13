// Float32 and float64 arithmetic, rounding to nearest.
#include "stub/emulator/ptx/lanes/float-arithmetic.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

float addFlushed(float a, float b) { return flush(add(flush(a), flush(b))); }
float subFlushed(float a, float b) { return flush(sub(flush(a), flush(b))); }
float mulFlushed(float a, float b) { return flush(mul(flush(a), flush(b))); }
float fmaFlushed(float a, float b, float c) { return flush(fma(flush(a), flush(b), flush(c))); }

// Hardware flushes results that would be subnormal if rounded to 24 bits with an unlimited exponent; a result just below the least normal
// number that rounds up to it in this way stays. So a result equal to the least normal number must be checked again with its operands.
bool isLeastNormal(float a) { return (bitsOf(a) & 0x7fffffff) == 0x00800000; }
float zeroLike(float a) { return fromBits<float>(bitsOf(a) & 0x80000000); }
// Checks a magnitude; multiplied by `by`, for quotients.
template <bool Away>
bool isBelowNormal(double exact, double by = 1) {
  const double size = fromBits<double>(bitsOf(exact) & ~BitsOf<double>::signBit),
               unit = fromBits<double>(bitsOf(by) & ~BitsOf<double>::signBit);
  return Away ? size <= (0x1p-126 - 0x1p-150) * unit : size < (0x1p-126 - 0x1p-151) * unit;
}
template <bool Away>
bool isTiny(float a, float b, float c = 0) {
  return isBelowNormal<Away>(addToOdd(static_cast<double>(flush(a)) * flush(b), flush(c)));
}
template <bool Away>
float flushProduct(float result, float a, float b) {
  return isLeastNormal(result) && isTiny<Away>(a, b) ? zeroLike(result) : flush(result);
}
template <bool Away>
float flushSum(float result, float a, float b, float c) {
  return isLeastNormal(result) && isTiny<Away>(a, b, c) ? zeroLike(result) : flush(result);
}
template <bool Away>
float flushQuotient(float result, float a, float b) {
  return isLeastNormal(result) && isBelowNormal<Away>(a, b) ? zeroLike(result) : flush(result);
}
template <bool Away>
float flushReciprocal(float result, float a) {
  return flushQuotient<Away>(result, 1, a);
}
template <bool Away>
float flushNarrowed(float result, double a) {
  return isLeastNormal(result) && isBelowNormal<Away>(a) ? zeroLike(result) : flush(result);
}

// The row of F, with a second look at lanes whose result is the least normal number, which is rare.
template <auto F>
struct Flushing;
template <class... A, float (*F)(A...)>
struct Flushing<F> {
  template <size_t... N>
  static inline void lanes(std::byte* frame, const Inst* inst, std::index_sequence<N...>) {
    float results[laneCount];
    uint32_t found = 0;
    const uint32_t* const in[] = {lanesAt<A>(frame, inst->op[N + 1])...};
    VGPU_LANES results[lane] = F(fromBits<float>(in[N][lane])...);
    for (int lane = 0; lane < laneCount; ++lane) found |= isLeastNormal(results[lane]) ? 1 : 0;
    if (found)
      for (int lane = 0; lane < laneCount; ++lane)
        if (isLeastNormal(results[lane]) && isTiny<false>(fromBits<float>(in[N][lane])...)) results[lane] = zeroLike(results[lane]);
    __builtin_memcpy(lanesAt<float>(frame, inst->op[0]), results, sizeof results);
  }
  static const Inst* run(Warp& warp, const Inst* inst) {
    lanes(static_cast<LaneFrame*>(static_cast<void*>(&warp))->frame, inst, std::index_sequence_for<A...>());
    return inst + 1;
  }
  static Row row() {
    Row made = LaneOp<F>::row();
    made.handler = run;
    return made;
  }
};

// A NaN becomes canonical in f32 and is unchanged in f64, as in the hardware's additions.
template <class T>
T flip(T a) {
  return fromBits<T>(bitsOf(a) ^ BitsOf<T>::signBit);
}
template <class T>
T magnitude(T a) {
  return fromBits<T>(bitsOf(a) & ~BitsOf<T>::signBit);
}
float negFloat(float a) { return canonical(flip(a)); }
double negDouble(double a) { return isNan(a) ? a + a : flip(a); }
float absFloat(float a) { return canonical(magnitude(a)); }
template <class T>
T copysign(T a, T b) {
  return fromBits<T>((bitsOf(b) & ~BitsOf<T>::signBit) | (bitsOf(a) & BitsOf<T>::signBit));
}

// Flushing alone, as for the operand of cvt.ftz, is an addition on the hardware: NaNs become canonical.
float flushed(float a) { return canonical(flush(a)); }

// A number is preferred to a NaN, and -0 is less than +0.
template <class T>
T min(T a, T b) {
  if (isNan(a)) return isNan(b) ? nan<T>() : b;
  if (isNan(b)) return a;
  return a < b || (a == b && signOf(a)) ? a : b;
}
template <class T>
T max(T a, T b) {
  if (isNan(a)) return isNan(b) ? nan<T>() : b;
  if (isNan(b)) return a;
  return a > b || (a == b && !signOf(a)) ? a : b;
}
float minNan(float a, float b) { return isNan(a) || isNan(b) ? nan<float>() : min(a, b); }
float maxNan(float a, float b) { return isNan(a) || isNan(b) ? nan<float>() : max(a, b); }
template <float (*F)(float, float)>
float xorSign(float a, float b) {
  const float found = F(magnitude(a), magnitude(b));
  return isNan(found) ? nan<float>()
                      : fromBits<float>((bitsOf(found) & 0x7fffffff) | ((bitsOf(a) ^ bitsOf(b)) & 0x80000000));
}

template <class T>
T saturate(T a) {
  return a > 0 ? (a < 1 ? a : T{1}) : T{0};
}  // a NaN becomes 0
// Tests of the class of a number (PTX ISA, testp).
template <class T>
bool finite(T a) {
  return a - a == 0;
}
template <class T>
bool infinite(T a) {
  return !finite(a) && !isNan(a);
}
template <class T>
bool number(T a) {
  return !isNan(a);
}
template <class T>
constexpr T leastNormal = sizeof(T) == 8 ? static_cast<T>(0x1p-1022) : static_cast<T>(0x1p-126);
template <class T>
bool subnormal(T a) {
  return a != 0 && magnitude(a) < leastNormal<T>;
}
template <class T>
bool normal(T a) {
  return finite(a) && !subnormal(a);
}  // includes zero, as on the hardware

// Rows that flush results of rounding operations with knowledge of their operands.
template <bool Away>
void flushes(Registry& r, const char* const (&names)[5]) {
  r.add(names[0], "f32", row<flushProduct<Away>>());
  r.add(names[1], "f32", row<flushSum<Away>>());
  r.add(names[2], "f32", row<flushQuotient<Away>>());
  r.add(names[3], "f32", row<flushReciprocal<Away>>());
  r.add(names[4], "f32", row<flushNarrowed<Away>>());
}

template <class T>
void arithmetic(Registry& r, const char* t) {
  r.add("add", t, row<add<T>>());
  r.add("sub", t, row<sub<T>>());
  r.add("mul", t, row<mul<T>>());
  r.add("fma", t, row<fma<T>>());
  r.add("div", t, row<div<T>>());
  r.add("rcp", t, row<rcp<T>>());
  r.add("min", t, row<min<T>>());
  r.add("max", t, row<max<T>>());
  r.add("copysign", t, row<copysign<T>>());
  r.add("saturate", t, row<saturate<T>>());
  r.add("testp.finite", t, row<finite<T>>());
  r.add("testp.infinite", t, row<infinite<T>>());
  r.add("testp.number", t, row<number<T>>());
  r.add("testp.notanumber", t, row<isNan<T>>());
  r.add("testp.normal", t, row<normal<T>>());
  r.add("testp.subnormal", t, row<subnormal<T>>());
}

}  // namespace

void addFloatOps(Registry& r) {
  arithmetic<float>(r, "f32");
  arithmetic<double>(r, "f64");
  r.add("neg", "f32", row<negFloat>());
  r.add("neg", "f64", row<negDouble>());
  r.add("abs", "f32", row<absFloat>());
  r.add("abs", "f64", row<magnitude<double>>());
  r.add("sqrt", "f32", row<sqrtFloat>());
  r.add("sqrt", "f64", row<sqrtDouble>());
  r.add("add.ftz", "f32", row<addFlushed>());
  r.add("sub.ftz", "f32", row<subFlushed>());
  r.add("mul.ftz", "f32", Flushing<mulFlushed>::row());
  r.add("fma.ftz", "f32", Flushing<fmaFlushed>::row());
  r.add("flush", "f32", row<flushed>());
  r.add("flush.result", "f32", row<flush>());
  flushes<false>(r, {"flush.nearest.mul", "flush.nearest.fma", "flush.nearest.div", "flush.nearest.rcp", "flush.nearest.cvt"});
  flushes<true>(r, {"flush.away.mul", "flush.away.fma", "flush.away.div", "flush.away.rcp", "flush.away.cvt"});
  r.add("min.NaN", "f32", row<minNan>());
  r.add("max.NaN", "f32", row<maxNan>());
  r.add("min.xorsign.abs", "f32", row<xorSign<min<float>>>());
  r.add("max.xorsign.abs", "f32", row<xorSign<max<float>>>());
  r.add("min.NaN.xorsign.abs", "f32", row<xorSign<minNan>>());
  r.add("max.NaN.xorsign.abs", "f32", row<xorSign<maxNan>>());
}

}  // namespace vgpu::emulator::VGPU_ISA
