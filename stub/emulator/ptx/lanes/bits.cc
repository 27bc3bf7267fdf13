// Logic, shifts, bit fields, permutes and moves.
#include "stub/emulator/ptx/lanes/lane-op.h"
#include "stub/emulator/ptx/lanes/whole-numbers.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

template <class T>
T bitNot(T a) {
  return static_cast<T>(~a);
}
template <class T>
T cnot(T a) {
  return a == 0;
}
template <class T>
T mov(T a) {
  return a;
}

// Shift amounts are not reduced: from the width on, the result is 0, or the sign for shr.s.
template <class T>
T shl(T a, uint32_t n) {
  return n >= sizeof(T) * 8 ? T{0} : static_cast<T>(a << n);
}
template <class T>
T shr(T a, uint32_t n) {
  constexpr uint32_t bits = sizeof(T) * 8;
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> (n >= bits ? bits - 1 : n));
  else
    return n >= bits ? T{0} : static_cast<T>(a >> n);
}

uint64_t pair(uint32_t hi, uint32_t lo) { return uint64_t{hi} << 32 | lo; }
uint32_t shfLeftWrap(uint32_t a, uint32_t b, uint32_t n) {
  return static_cast<uint32_t>((pair(b, a) << (n & 31)) >> 32);
}
uint32_t shfLeftClamp(uint32_t a, uint32_t b, uint32_t n) {
  return static_cast<uint32_t>((pair(b, a) << (n > 32 ? 32 : n)) >> 32);
}
uint32_t shfRightWrap(uint32_t a, uint32_t b, uint32_t n) { return static_cast<uint32_t>(pair(b, a) >> (n & 31)); }
uint32_t shfRightClamp(uint32_t a, uint32_t b, uint32_t n) {
  return static_cast<uint32_t>(pair(b, a) >> (n > 32 ? 32 : n));
}

template <class T>
uint32_t popc(T a) {
  if constexpr (sizeof(T) == 8)
    return static_cast<uint32_t>(__builtin_popcountll(a));
  else
    return static_cast<uint32_t>(__builtin_popcount(a));
}
template <class T>
uint32_t clz(T a) {
  if constexpr (sizeof(T) == 8)
    return a == 0 ? 64 : static_cast<uint32_t>(__builtin_clzll(a));
  else
    return a == 0 ? 32 : static_cast<uint32_t>(__builtin_clz(a));
}
template <class T>
T brev(T a) {
  T result = 0;
  for (unsigned k = 0; k < sizeof(T) * 8; ++k) result |= ((a >> k) & 1) << (sizeof(T) * 8 - 1 - k);
  return result;
}
// The position of the highest bit that differs from the sign; all ones if there is none.
template <class T>
uint32_t bfind(T a) {
  using U = std::make_unsigned_t<T>;
  const U magnitude = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
  return magnitude == 0 ? ~0u : static_cast<uint32_t>(sizeof(T) * 8 - 1) - clz<U>(magnitude);
}
template <class T>
uint32_t bfindShift(T a) {
  const uint32_t at = bfind(a);
  return at == ~0u ? at : static_cast<uint32_t>(sizeof(T) * 8 - 1) - at;
}

// Field position and length are 8 bits each. Bits past the register read as the sign (signed) or zero.
template <class T>
T bfe(T a, uint32_t b, uint32_t c) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t most = sizeof(T) * 8 - 1;
  const uint32_t pos = b & 0xff, len = c & 0xff;
  if (len == 0) return 0;
  const uint32_t signAt = pos + len - 1 < most ? pos + len - 1 : most;
  const bool sign = std::is_signed_v<T> && ((static_cast<U>(a) >> signAt) & 1);
  const U shifted = pos > most ? U{0} : static_cast<U>(a) >> pos;
  const uint32_t kept = pos > most ? 0 : len < most + 1 - pos ? len : most + 1 - pos;  // number of bits taken from `a`
  const U mask = kept > most ? ~U{0} : static_cast<U>((U{1} << kept) - 1);
  return static_cast<T>((shifted & mask) | (sign ? static_cast<U>(~mask) : U{0}));
}
template <class T>
T bfi(T a, T b, uint32_t c, uint32_t d) {
  constexpr uint32_t bits = sizeof(T) * 8;
  const uint32_t pos = c & 0xff, len = d & 0xff;
  if (pos >= bits || len == 0) return b;
  const T field = len >= bits ? ~T{0} : (T{1} << len) - 1;
  return (b & ~(field << pos)) | ((a & field) << pos);
}

uint32_t bmskClamp(uint32_t a, uint32_t b) {
  const uint32_t width = b > 32 ? 32 : b;
  return shl<uint32_t>(width == 32 ? ~0u : (1u << width) - 1, a);
}
uint32_t bmskWrap(uint32_t a, uint32_t b) { return ((1u << (b & 31)) - 1) << (a & 31); }

template <class T, bool Wrap>
T szext(T a, uint32_t n) {
  if (Wrap) n &= 31;
  if (n >= 32) return a;
  if (n == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(static_cast<uint32_t>(a) << (32 - n)) >> (32 - n);
  else
    return a & ((1u << n) - 1);
}

// The position of the n-th set bit from `base`, up for n > 0 and down for n < 0 (PTX ISA, fns).
uint32_t fns(uint32_t mask, uint32_t base, int32_t n) {
  if (base > 31) return ~0u;
  if (n == 0) return (mask >> base) & 1 ? base : ~0u;
  int32_t left = n > 0 ? n : -n;
  for (int32_t at = static_cast<int32_t>(base); at >= 0 && at<32; at += n> 0 ? 1 : -1)
    if (((mask >> at) & 1) && --left == 0) return static_cast<uint32_t>(at);
  return ~0u;
}

uint32_t permuteByte(uint64_t source, uint32_t selector) {
  const uint32_t byte = static_cast<uint32_t>(source >> ((selector & 7) * 8)) & 0xff;
  return selector & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}
uint32_t prmt(uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t source = pair(b, a);
  uint32_t result = 0;
  for (int k = 0; k < 4; ++k) result |= permuteByte(source, (c >> (4 * k)) & 15) << (8 * k);
  return result;
}
// The named modes select bytes by the low two bits of c (PTX ISA, prmt, the table of modes).
constexpr uint16_t forward4[4] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr uint16_t backward4[4] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr uint16_t replicate8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr uint16_t edgeLeft[4] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr uint16_t edgeRight[4] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr uint16_t replicate16[4] = {0x1010, 0x3232, 0x1010, 0x3232};
template <const uint16_t (&Mode)[4]>
uint32_t prmtMode(uint32_t a, uint32_t b, uint32_t c) {
  return prmt(a, b, Mode[c & 3]);
}

uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (unsigned k = 0; k < 8; ++k) {
    const uint32_t term = (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    result |= term & (0u - ((table >> k) & 1));
  }
  return result;
}

uint32_t pack16(uint16_t lo, uint16_t hi) { return lo | uint32_t{hi} << 16; }
uint16_t pack8(uint8_t lo, uint8_t hi) { return static_cast<uint16_t>(lo | hi << 8); }
uint64_t pack32(uint32_t lo, uint32_t hi) { return pair(hi, lo); }
Wide pack64(uint64_t lo, uint64_t hi) { return {lo, hi}; }
template <class T, class W, int Shift>
T part(W a) {
  return static_cast<T>(a >> Shift);
}
uint64_t lo128(Wide a) { return a.lo; }
uint64_t hi128(Wide a) { return a.hi; }
int64_t extendSigned(int32_t a) { return a; }
uint64_t extendUnsigned(uint32_t a) { return a; }

template <class T>
T selp(T a, T b, bool p) {
  return p ? a : b;
}

template <class T>
void logic(Registry& r, const char* t) {
  r.add("and", t, row<bitAnd<T>>());
  r.add("or", t, row<bitOr<T>>());
  r.add("xor", t, row<bitXor<T>>());
  r.add("not", t, row<bitNot<T>>());
  r.add("cnot", t, row<cnot<T>>());
  r.add("shl", t, row<shl<T>>());
  r.add("shr", t, row<shr<T>>());
  r.add("mov", t, row<mov<T>>());
  r.add("selp", t, row<selp<T>>());
}

template <class U, class S>
void fields(Registry& r, const char* b, const char* u, const char* s) {
  r.add("popc", b, row<popc<U>>());
  r.add("clz", b, row<clz<U>>());
  r.add("brev", b, row<brev<U>>());
  r.add("bfi", b, row<bfi<U>>());
  r.add("bfe", u, row<bfe<U>>());
  r.add("bfe", s, row<bfe<S>>());
  r.add("bfind", u, row<bfind<U>>());
  r.add("bfind", s, row<bfind<S>>());
  r.add("bfind.shiftamt", u, row<bfindShift<U>>());
  r.add("bfind.shiftamt", s, row<bfindShift<S>>());
}

}  // namespace

void addBitOps(Registry& r) {
  logic<uint16_t>(r, "b16");
  logic<uint32_t>(r, "b32");
  logic<uint64_t>(r, "b64");
  r.add("mov", "b128", row<mov<Wide>>());
  r.add("selp", "b128", row<selp<Wide>>());
  r.add("shr", "u16", row<shr<uint16_t>>());
  r.add("shr", "u32", row<shr<uint32_t>>());
  r.add("shr", "u64", row<shr<uint64_t>>());
  r.add("shr", "s16", row<shr<int16_t>>());
  r.add("shr", "s32", row<shr<int32_t>>());
  r.add("shr", "s64", row<shr<int64_t>>());
  fields<uint32_t, int32_t>(r, "b32", "u32", "s32");
  fields<uint64_t, int64_t>(r, "b64", "u64", "s64");
  r.add("shf.l.wrap", "b32", row<shfLeftWrap>());
  r.add("shf.l.clamp", "b32", row<shfLeftClamp>());
  r.add("shf.r.wrap", "b32", row<shfRightWrap>());
  r.add("shf.r.clamp", "b32", row<shfRightClamp>());
  r.add("bmsk.clamp", "b32", row<bmskClamp>());
  r.add("bmsk.wrap", "b32", row<bmskWrap>());
  r.add("szext.clamp", "u32", row<szext<uint32_t, false>>());
  r.add("szext.clamp", "s32", row<szext<int32_t, false>>());
  r.add("szext.wrap", "u32", row<szext<uint32_t, true>>());
  r.add("szext.wrap", "s32", row<szext<int32_t, true>>());
  r.add("fns", "b32", row<fns>());
  r.add("prmt", "b32", row<prmt>());
  r.add("prmt.b32", "f4e", row<prmtMode<forward4>>());
  r.add("prmt.b32", "b4e", row<prmtMode<backward4>>());
  r.add("prmt.b32", "rc8", row<prmtMode<replicate8>>());
  r.add("prmt.b32", "ecl", row<prmtMode<edgeLeft>>());
  r.add("prmt.b32", "ecr", row<prmtMode<edgeRight>>());
  r.add("prmt.b32", "rc16", row<prmtMode<replicate16>>());
  r.add("lop3", "b32", row<lop3>());
  r.add("pack", "b16", row<pack8>());
  r.add("pack", "b32", row<pack16>());
  r.add("pack", "b64", row<pack32>());
  r.add("pack", "b128", row<pack64>());
  r.add("lo", "b16", row<part<uint8_t, uint16_t, 0>>());
  r.add("hi", "b16", row<part<uint8_t, uint16_t, 8>>());
  r.add("lo", "b32", row<part<uint16_t, uint32_t, 0>>());
  r.add("hi", "b32", row<part<uint16_t, uint32_t, 16>>());
  r.add("lo", "b64", row<part<uint32_t, uint64_t, 0>>());
  r.add("hi", "b64", row<part<uint32_t, uint64_t, 32>>());
  r.add("lo", "b128", row<lo128>());
  r.add("hi", "b128", row<hi128>());
  r.add("extend", "s32", row<extendSigned>());
  r.add("extend", "u32", row<extendUnsigned>());
}

}  // namespace vgpu::emulator::VGPU_ISA
