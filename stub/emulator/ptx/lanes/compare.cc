// Comparisons to a predicate. Forms that also combine with a predicate or write the complement are composed of these.
#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

template <class T>
bool eq(T a, T b) {
  return a == b;
}
template <class T>
bool ne(T a, T b) {
  return !isNan(a) && !isNan(b) && a != b;
}
template <class T>
bool lt(T a, T b) {
  return a < b;
}
template <class T>
bool le(T a, T b) {
  return a <= b;
}
template <class T>
bool gt(T a, T b) {
  return a > b;
}
template <class T>
bool ge(T a, T b) {
  return a >= b;
}
// The unordered forms are true if an operand is a NaN.
template <class T>
bool equ(T a, T b) {
  return !ne(a, b);
}
template <class T>
bool neu(T a, T b) {
  return a != b;
}
template <class T>
bool ltu(T a, T b) {
  return !(a >= b);
}
template <class T>
bool leu(T a, T b) {
  return !(a > b);
}
template <class T>
bool gtu(T a, T b) {
  return !(a <= b);
}
template <class T>
bool geu(T a, T b) {
  return !(a < b);
}
template <class T>
bool ordered(T a, T b) {
  return !isNan(a) && !isNan(b);
}
template <class T>
bool unordered(T a, T b) {
  return isNan(a) || isNan(b);
}

template <class T>
void equality(Registry& r, const char* t) {
  r.add("setp.eq", t, row<eq<T>>());
  r.add("setp.ne", t, row<neu<T>>());
}

// Halves are compared as floats.
float widened(Half a) { return toFloat(a); }
float widened(Brain a) { return toFloat(a); }
template <class T>
T widened(T a) {
  return a;
}
template <class T, auto F>
bool widely(T a, T b) {
  return F(widened(a), widened(b));
}

template <class T>
void order(Registry& r, const char* t) {
  using V = decltype(widened(T{}));
  r.add("setp.lt", t, row<widely<T, lt<V>>>());
  r.add("setp.le", t, row<widely<T, le<V>>>());
  r.add("setp.gt", t, row<widely<T, gt<V>>>());
  r.add("setp.ge", t, row<widely<T, ge<V>>>());
}

template <class T>
void integers(Registry& r, const char* t) {
  equality<T>(r, t);
  order<T>(r, t);
  if constexpr (!std::is_signed_v<T>) {
    r.add("setp.lo", t, row<lt<T>>());
    r.add("setp.ls", t, row<le<T>>());
    r.add("setp.hi", t, row<gt<T>>());
    r.add("setp.hs", t, row<ge<T>>());
  }
}

template <class T>
void floats(Registry& r, const char* t) {
  using V = decltype(widened(T{}));
  r.add("setp.eq", t, row<widely<T, eq<V>>>());
  r.add("setp.ne", t, row<widely<T, ne<V>>>());
  order<T>(r, t);
  r.add("setp.equ", t, row<widely<T, equ<V>>>());
  r.add("setp.neu", t, row<widely<T, neu<V>>>());
  r.add("setp.ltu", t, row<widely<T, ltu<V>>>());
  r.add("setp.leu", t, row<widely<T, leu<V>>>());
  r.add("setp.gtu", t, row<widely<T, gtu<V>>>());
  r.add("setp.geu", t, row<widely<T, geu<V>>>());
  r.add("setp.num", t, row<widely<T, ordered<V>>>());
  r.add("setp.nan", t, row<widely<T, unordered<V>>>());
}

}  // namespace

void addCompareOps(Registry& r) {
  equality<uint16_t>(r, "b16");
  equality<uint32_t>(r, "b32");
  equality<uint64_t>(r, "b64");
  integers<uint16_t>(r, "u16");
  integers<uint32_t>(r, "u32");
  integers<uint64_t>(r, "u64");
  integers<int16_t>(r, "s16");
  integers<int32_t>(r, "s32");
  integers<int64_t>(r, "s64");
  floats<float>(r, "f32");
  floats<double>(r, "f64");
  floats<Half>(r, "f16");
  floats<Brain>(r, "bf16");
}

}  // namespace vgpu::emulator::VGPU_ISA
