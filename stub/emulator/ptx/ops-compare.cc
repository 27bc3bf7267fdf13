// Comparisons to a predicate. Forms that also combine with a predicate or write its complement are made of these.
#include "lane-float.h"

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
// The unordered forms hold where an operand is a NaN.
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

template <class T>
void order(Registry& r, const char* t) {
  r.add("setp.lt", t, row<lt<T>>());
  r.add("setp.le", t, row<le<T>>());
  r.add("setp.gt", t, row<gt<T>>());
  r.add("setp.ge", t, row<ge<T>>());
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
  r.add("setp.eq", t, row<eq<T>>());
  r.add("setp.ne", t, row<ne<T>>());
  order<T>(r, t);
  r.add("setp.equ", t, row<equ<T>>());
  r.add("setp.neu", t, row<neu<T>>());
  r.add("setp.ltu", t, row<ltu<T>>());
  r.add("setp.leu", t, row<leu<T>>());
  r.add("setp.gtu", t, row<gtu<T>>());
  r.add("setp.geu", t, row<geu<T>>());
  r.add("setp.num", t, row<ordered<T>>());
  r.add("setp.nan", t, row<unordered<T>>());
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
}

}  // namespace vgpu::emulator::VGPU_ISA
