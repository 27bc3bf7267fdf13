// Half and bfloat16 arithmetic, single and in pairs.
#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

template <class H>
H canonicalNan() {
  return {0x7fff};
}
template <class H>
bool nanHalf(H a) {
  return isNan(toFloat(a));
}
template <class H>
H flushHalf(H a) {
  constexpr uint16_t exponent = std::is_same_v<H, Half> ? 0x7c00 : 0x7f80;
  return (a.bits & exponent) == 0 ? H{static_cast<uint16_t>(a.bits & 0x8000)} : a;
}

template <class H>
H add(H a, H b) {
  return fromFloat<H>(toFloat(a) + toFloat(b));
}
template <class H>
H sub(H a, H b) {
  return fromFloat<H>(toFloat(a) - toFloat(b));
}
// In double, because the product of two bfloat16 values may be smaller than a float's least.
template <class H>
H mul(H a, H b) {
  return fromFloat<H>(double{toFloat(a)} * double{toFloat(b)});
}
template <class H>
H fma(H a, H b, H c) {
  return fromFloat<H>(addToOdd(double{toFloat(a)} * double{toFloat(b)}, toFloat(c)));
}
// Sums of bfloat16 may need more than a float's 24 bits: computed in double and rounded to odd.
Brain addBrain(Brain a, Brain b) { return toBrain(addToOdd(toFloat(a), toFloat(b))); }
Brain subBrain(Brain a, Brain b) { return toBrain(addToOdd(toFloat(a), -double{toFloat(b)})); }
template <class H>
H neg(H a) {
  return nanHalf(a) ? canonicalNan<H>() : H{static_cast<uint16_t>(a.bits ^ 0x8000)};
}
template <class H>
H abs(H a) {
  return nanHalf(a) ? canonicalNan<H>() : H{static_cast<uint16_t>(a.bits & 0x7fff)};
}

template <class H>
H min(H a, H b) {
  const float x = toFloat(a), y = toFloat(b);
  if (isNan(x)) return isNan(y) ? canonicalNan<H>() : b;
  if (isNan(y)) return a;
  return x < y || (x == y && (a.bits & 0x8000)) ? a : b;
}
template <class H>
H max(H a, H b) {
  const float x = toFloat(a), y = toFloat(b);
  if (isNan(x)) return isNan(y) ? canonicalNan<H>() : b;
  if (isNan(y)) return a;
  return x > y || (x == y && !(a.bits & 0x8000)) ? a : b;
}
template <class H>
H minNan(H a, H b) {
  return nanHalf(a) || nanHalf(b) ? canonicalNan<H>() : min(a, b);
}
template <class H>
H maxNan(H a, H b) {
  return nanHalf(a) || nanHalf(b) ? canonicalNan<H>() : max(a, b);
}
// The minimum or maximum of the magnitudes, with the sign of the product (PTX ISA, min with .xorsign.abs).
template <class H, H (*F)(H, H)>
H xorSign(H a, H b) {
  const H result = F({static_cast<uint16_t>(a.bits & 0x7fff)}, {static_cast<uint16_t>(b.bits & 0x7fff)});
  return nanHalf(result) ? result : H{static_cast<uint16_t>(result.bits | ((a.bits ^ b.bits) & 0x8000))};
}
// fma.oob: zero if a factor is the NaN, of either sign, with which tensor copies fill elements outside the tensor; it differs from the
// canonical NaN.
template <class H>
bool isOutside(H a) {
  return (a.bits & 0x7fff) == 0x7ff7;
}
template <class H>
H fmaInside(H a, H b, H c) {
  return isOutside(a) || isOutside(b) ? H{0} : fma(a, b, c);
}
// Clamps to the nearest finite value.
template <class H>
H finite(H a) {
  constexpr uint16_t infinity = std::is_same_v<H, Half> ? 0x7c00 : 0x7f80;
  return (a.bits & 0x7fff) == infinity ? H{static_cast<uint16_t>(a.bits - 1)} : a;
}
template <class H>
H saturate(H a) {
  const float x = toFloat(a);
  return x > 0 ? (x < 1 ? a : fromFloat<H>(1.0)) : H{0};
}
template <class H>
H relu(H a) {
  return nanHalf(a) ? canonicalNan<H>() : a.bits & 0x8000 ? H{0} : a;
}
template <class H>
H ex2(H a) {
  return fromFloat<H>(__builtin_exp2(toFloat(a)));
}
template <class H>
H tanh(H a) {
  return fromFloat<H>(__builtin_tanh(toFloat(a)));
}

// A pair applies the operation to each half.
template <class H>
using Pair = std::conditional_t<std::is_same_v<H, Half>, Half2, Brain2>;
template <class H>
H lower(Pair<H> a) {
  return {static_cast<uint16_t>(a.bits)};
}
template <class H>
H upper(Pair<H> a) {
  return {static_cast<uint16_t>(a.bits >> 16)};
}
template <class H, auto F, class... A>
Pair<H> both(A... a) {
  return {F(lower<H>(a)...).bits | uint32_t{F(upper<H>(a)...).bits} << 16};
}
template <class H, auto F>
Pair<H> both1(Pair<H> a) {
  return both<H, F>(a);
}
template <class H, auto F>
Pair<H> both2(Pair<H> a, Pair<H> b) {
  return both<H, F>(a, b);
}
template <class H, auto F>
Pair<H> both3(Pair<H> a, Pair<H> b, Pair<H> c) {
  return both<H, F>(a, b, c);
}

template <class H>
void unary(Registry& r, const char* one, const char* two) {
  r.add("neg", one, row<neg<H>>());
  r.add("abs", one, row<abs<H>>());
  r.add("saturate", one, row<saturate<H>>());
  r.add("flush", one, row<flushHalf<H>>());
  r.add("clamp.relu", one, row<relu<H>>());
  r.add("satfinite", one, row<finite<H>>());
  r.add("ex2.approx", one, row<ex2<H>>());
  r.add("tanh.approx", one, row<tanh<H>>());
  r.add("neg", two, row<both1<H, neg<H>>>());
  r.add("abs", two, row<both1<H, abs<H>>>());
  r.add("saturate", two, row<both1<H, saturate<H>>>());
  r.add("flush", two, row<both1<H, flushHalf<H>>>());
  r.add("clamp.relu", two, row<both1<H, relu<H>>>());
  r.add("ex2.approx", two, row<both1<H, ex2<H>>>());
  r.add("tanh.approx", two, row<both1<H, tanh<H>>>());
}

template <class H, auto Add, auto Sub>
void binary(Registry& r, const char* one, const char* two) {
  r.add("add", one, row<Add>());
  r.add("sub", one, row<Sub>());
  r.add("mul", one, row<mul<H>>());
  r.add("fma", one, row<fma<H>>());
  r.add("min", one, row<min<H>>());
  r.add("max", one, row<max<H>>());
  r.add("min.NaN", one, row<minNan<H>>());
  r.add("max.NaN", one, row<maxNan<H>>());
  r.add("min.xorsign.abs", one, row<xorSign<H, min<H>>>());
  r.add("max.xorsign.abs", one, row<xorSign<H, max<H>>>());
  r.add("min.NaN.xorsign.abs", one, row<xorSign<H, minNan<H>>>());
  r.add("max.NaN.xorsign.abs", one, row<xorSign<H, maxNan<H>>>());
  r.add("fma.oob", one, row<fmaInside<H>>());
  r.add("add", two, row<both2<H, Add>>());
  r.add("sub", two, row<both2<H, Sub>>());
  r.add("mul", two, row<both2<H, mul<H>>>());
  r.add("fma", two, row<both3<H, fma<H>>>());
  r.add("min", two, row<both2<H, min<H>>>());
  r.add("max", two, row<both2<H, max<H>>>());
  r.add("min.NaN", two, row<both2<H, minNan<H>>>());
  r.add("max.NaN", two, row<both2<H, maxNan<H>>>());
  r.add("min.xorsign.abs", two, row<both2<H, xorSign<H, min<H>>>>());
  r.add("max.xorsign.abs", two, row<both2<H, xorSign<H, max<H>>>>());
  r.add("min.NaN.xorsign.abs", two, row<both2<H, xorSign<H, minNan<H>>>>());
  r.add("max.NaN.xorsign.abs", two, row<both2<H, xorSign<H, maxNan<H>>>>());
  r.add("fma.oob", two, row<both3<H, fmaInside<H>>>());
}

}  // namespace

void addHalfOps(Registry& r) {
  unary<Half>(r, "f16", "f16x2");
  unary<Brain>(r, "bf16", "bf16x2");
  binary<Half, add<Half>, sub<Half>>(r, "f16", "f16x2");
  binary<Brain, addBrain, subBrain>(r, "bf16", "bf16x2");
}

}  // namespace vgpu::emulator::VGPU_ISA
