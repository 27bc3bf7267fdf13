// Integer arithmetic.
#include "stub/emulator/ptx/lanes/lane-op.h"
#include "stub/emulator/ptx/lanes/whole-numbers.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
constexpr bool signedType = std::is_signed_v<T>;
template <class T>
constexpr int bitCount = sizeof(T) * 8;
template <class T>
constexpr T leastValue = signedType<T> ? static_cast<T>(Unsigned<T>{1} << (bitCount<T> - 1)) : T{0};
template <class T>
constexpr T mostValue = static_cast<T>(~leastValue<T>);

template <size_t Bytes>
struct WideOf;
template <>
struct WideOf<1> {
  using S = int16_t;
  using U = uint16_t;
};
template <>
struct WideOf<2> {
  using S = int32_t;
  using U = uint32_t;
};
template <>
struct WideOf<4> {
  using S = int64_t;
  using U = uint64_t;
};
template <>
struct WideOf<8> {
  using S = __int128;
  using U = unsigned __int128;
};
template <class T>
using Double = std::conditional_t<signedType<T>, typename WideOf<sizeof(T)>::S, typename WideOf<sizeof(T)>::U>;

template <class T>
T sub(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) - static_cast<Modular<T>>(b));
}
template <class T>
T mulLo(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
}
template <class T>
T mulHi(T a, T b) {
  return static_cast<T>((static_cast<Double<T>>(a) * static_cast<Double<T>>(b)) >> bitCount<T>);
}
template <class T>
Double<T> mulWide(T a, T b) {
  return static_cast<Double<T>>(static_cast<Double<T>>(a) * static_cast<Double<T>>(b));
}
template <class T>
T madLo(T a, T b, T c) {
  return add(mulLo(a, b), c);
}
template <class T>
T madHi(T a, T b, T c) {
  return add(mulHi(a, b), c);
}
template <class T>
Double<T> madWide(T a, T b, Double<T> c) {
  return add<Double<T>>(mulWide(a, b), c);
}

// Division by zero gives all ones on NVIDIA hardware, for quotient and remainder (PTX leaves it unspecified).
template <class T>
T div(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (signedType<T>)
    if (b == -1) return sub<T>(0, a);
  return static_cast<T>(a / b);
}
template <class T>
T rem(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (signedType<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

template <class T>
T neg(T a) {
  return sub<T>(0, a);
}
template <class T>
T abs(T a) {
  return a < 0 ? neg(a) : a;
}
template <class T>
T minRelu(T a, T b) {
  return most<T>(least(a, b), 0);
}
template <class T>
T maxRelu(T a, T b) {
  return most<T>(most(a, b), 0);
}
template <class T>
T sad(T a, T b, T c) {
  return add(c, a < b ? sub(b, a) : sub(a, b));
}

int32_t clampTo32(int64_t value) {
  return static_cast<int32_t>(value > mostValue<int32_t>    ? mostValue<int32_t>
                              : value < leastValue<int32_t> ? leastValue<int32_t>
                                                            : value);
}
int32_t addSat(int32_t a, int32_t b) { return clampTo32(int64_t{a} + b); }
int32_t subSat(int32_t a, int32_t b) { return clampTo32(int64_t{a} - b); }
int32_t madHiSat(int32_t a, int32_t b, int32_t c) { return clampTo32(((int64_t{a} * b) >> 32) + c); }

// The 24-bit forms multiply the operands' low 24 bits; lo and hi take bits 31..0 and 47..16 of the 48-bit product.
template <class T>
int64_t product24(T a, T b) {
  if constexpr (signedType<T>)
    return int64_t{static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8} *
           (static_cast<int32_t>(static_cast<uint32_t>(b) << 8) >> 8);
  else
    return static_cast<int64_t>(uint64_t{a & 0xffffff} * (b & 0xffffff));
}
template <class T>
T mul24Lo(T a, T b) {
  return static_cast<T>(product24(a, b));
}
template <class T>
T mul24Hi(T a, T b) {
  return static_cast<T>(product24(a, b) >> 16);
}
template <class T>
T mad24Lo(T a, T b, T c) {
  return add(mul24Lo(a, b), c);
}
template <class T>
T mad24Hi(T a, T b, T c) {
  return add(mul24Hi(a, b), c);
}
int32_t mad24HiSat(int32_t a, int32_t b, int32_t c) { return clampTo32((product24(a, b) >> 16) + c); }

// The hidden flag that .cc instructions write, 0 or 1: the carry out of a + b + carry, and for a difference the carry out of a + ~b +
// carry, which is 1 if there was no borrow. PTX describes it as a borrow, but nvcc reads the flag of a subtraction with addc (128-bit
// division), and the hardware sets it like this.
template <class T>
uint32_t carryAdd(T a, T b, uint32_t carry) {
  const T sum = a + b;
  return uint32_t{sum < a} | uint32_t{static_cast<T>(sum + carry) < sum};
}
template <class T>
uint32_t carrySub(T a, T b, uint32_t carry) {
  return carryAdd<T>(a, static_cast<T>(~b), carry);
}
template <class T>
T addCarry(T a, T b, uint32_t carry) {
  return a + b + carry;
}
template <class T>
T subCarry(T a, T b, uint32_t carry) {
  return a + static_cast<T>(~b) + carry;
}

template <class A, class B, class C>
C dp4a(uint32_t a, uint32_t b, C c) {
  uint32_t sum = static_cast<uint32_t>(c);
  for (int k = 0; k < 32; k += 8)
    sum += static_cast<uint32_t>(int32_t{static_cast<A>(a >> k)} * int32_t{static_cast<B>(b >> k)});
  return static_cast<C>(sum);
}
template <class A, class B, class C, int Shift>
C dp2a(uint32_t a, uint32_t b, C c) {
  uint32_t sum = static_cast<uint32_t>(c);
  for (int k = 0; k < 2; ++k)
    sum +=
        static_cast<uint32_t>(int64_t{static_cast<A>(a >> (16 * k))} * int64_t{static_cast<B>(b >> (Shift + 8 * k))});
  return static_cast<C>(sum);
}

template <class T>
void arithmetic(Registry& r, const char* t) {
  r.add("add", t, row<add<T>>());
  r.add("sub", t, row<sub<T>>());
  r.add("mul.lo", t, row<mulLo<T>>());
  r.add("mul.hi", t, row<mulHi<T>>());
  r.add("mad.lo", t, row<madLo<T>>());
  r.add("mad.hi", t, row<madHi<T>>());
  r.add("div", t, row<div<T>>());
  r.add("rem", t, row<rem<T>>());
  r.add("min", t, row<least<T>>());
  r.add("max", t, row<most<T>>());
  r.add("sad", t, row<sad<T>>());
  r.add("neg", t, row<neg<T>>());
  if constexpr (signedType<T>) r.add("abs", t, row<abs<T>>());
  if constexpr (sizeof(T) < 8) {
    r.add("mul.wide", t, row<mulWide<T>>());
    r.add("mad.wide", t, row<madWide<T>>());
  }
}

template <class T>
void extended(Registry& r, const char* t) {
  r.add("carry.add", t, row<carryAdd<T>>());
  r.add("carry.sub", t, row<carrySub<T>>());
  r.add("addc", t, row<addCarry<T>>());
  r.add("subc", t, row<subCarry<T>>());
}

template <class T>
void multiply24(Registry& r, const char* t) {
  r.add("mul24.lo", t, row<mul24Lo<T>>());
  r.add("mul24.hi", t, row<mul24Hi<T>>());
  r.add("mad24.lo", t, row<mad24Lo<T>>());
  r.add("mad24.hi", t, row<mad24Hi<T>>());
}

template <class A, class B, class C>
void dotProducts(Registry& r, const char* t) {
  using A16 = std::conditional_t<signedType<A>, int16_t, uint16_t>;
  r.add("dp4a", t, row<dp4a<A, B, C>>());
  r.add("dp2a.lo", t, row<dp2a<A16, B, C, 0>>());
  r.add("dp2a.hi", t, row<dp2a<A16, B, C, 16>>());
}

}  // namespace

void addIntegerOps(Registry& r) {
  arithmetic<uint16_t>(r, "u16");
  arithmetic<int16_t>(r, "s16");
  arithmetic<uint32_t>(r, "u32");
  arithmetic<int32_t>(r, "s32");
  arithmetic<uint64_t>(r, "u64");
  arithmetic<int64_t>(r, "s64");
  extended<uint32_t>(r, "u32");
  extended<uint64_t>(r, "u64");
  multiply24<uint32_t>(r, "u32");
  multiply24<int32_t>(r, "s32");
  dotProducts<uint8_t, uint8_t, uint32_t>(r, "u32.u32");
  dotProducts<uint8_t, int8_t, int32_t>(r, "u32.s32");
  dotProducts<int8_t, uint8_t, int32_t>(r, "s32.u32");
  dotProducts<int8_t, int8_t, int32_t>(r, "s32.s32");
  r.add("add.sat", "s32", row<addSat>());
  r.add("sub.sat", "s32", row<subSat>());
  r.add("mad.hi.sat", "s32", row<madHiSat>());
  r.add("mad24.hi.sat", "s32", row<mad24HiSat>());
  r.add("min.relu", "s32", row<minRelu<int32_t>>());
  r.add("max.relu", "s32", row<maxRelu<int32_t>>());
}

}  // namespace vgpu::emulator::VGPU_ISA
