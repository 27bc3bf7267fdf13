// Integers packed in a register: pairs of 16 bits, and bytes and halves for the video instructions.
#include "stub/emulator/ptx/lanes/lane-op.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

// Operations on one part, in int, which holds all sums and differences of 16-bit values.
int add(int a, int b) { return a + b; }
int sub(int a, int b) { return a - b; }
int min(int a, int b) { return a < b ? a : b; }
int max(int a, int b) { return a > b ? a : b; }
int minRelu(int a, int b) { return max(min(a, b), 0); }
int maxRelu(int a, int b) { return max(max(a, b), 0); }
int absDiff(int a, int b) { return a < b ? b - a : a - b; }
// Rounded to nearest, ties away from zero (PTX ISA, vavrg2).
int average(int a, int b) { return (a + b + (a + b >= 0)) >> 1; }

template <class T, auto F>
uint32_t each(uint32_t a, uint32_t b) {
  constexpr int bits = sizeof(T) * 8;
  uint32_t result = 0;
  for (int k = 0; k < 32; k += bits)
    result |= (static_cast<uint32_t>(F(static_cast<T>(a >> k), static_cast<T>(b >> k))) & ((1u << bits) - 1)) << k;
  return result;
}

template <class T>
uint32_t sum(uint32_t a, uint32_t c) {
  uint32_t result = c;
  for (int k = 0; k < 32; k += static_cast<int>(sizeof(T) * 8)) result += static_cast<T>(a >> k);
  return result;
}

// cvt.pack: two values, each clamped to `Bits`, are shifted in below the present bits (PTX ISA, cvt.pack).
template <int Bits, bool Signed>
uint32_t clamped(int32_t a) {
  constexpr int32_t least = Signed ? -(1 << (Bits - 1)) : 0, most = Signed ? (1 << (Bits - 1)) - 1 : (1 << Bits) - 1;
  return static_cast<uint32_t>(min(max(a, least), most)) & ((1u << Bits) - 1);
}
template <int Bits, bool Signed>
uint32_t pack(int32_t a, int32_t b, uint32_t c) {
  return c << 2 * Bits | clamped<Bits, Signed>(a) << Bits | clamped<Bits, Signed>(b);
}
template <bool Signed>
uint32_t packHalves(int32_t a, int32_t b) {
  return clamped<16, Signed>(a) << 16 | clamped<16, Signed>(b);
}

template <class T>
void video(Registry& r, const char* t) {
  r.add("vadd", t, row<each<T, add>>());
  r.add("vsub", t, row<each<T, sub>>());
  r.add("vmin", t, row<each<T, min>>());
  r.add("vmax", t, row<each<T, max>>());
  r.add("vavrg", t, row<each<T, average>>());
  r.add("vabsdiff", t, row<each<T, absDiff>>());
}

}  // namespace

void addPackedOps(Registry& r) {
  r.add("add", "u16x2", row<each<uint16_t, add>>());
  r.add("add", "s16x2", row<each<int16_t, add>>());
  r.add("min", "u16x2", row<each<uint16_t, min>>());
  r.add("max", "u16x2", row<each<uint16_t, max>>());
  r.add("min", "s16x2", row<each<int16_t, min>>());
  r.add("max", "s16x2", row<each<int16_t, max>>());
  r.add("min.relu", "s16x2", row<each<int16_t, minRelu>>());
  r.add("max.relu", "s16x2", row<each<int16_t, maxRelu>>());
  r.add("cvt.pack.sat", "u16.s32", row<packHalves<false>>());
  r.add("cvt.pack.sat", "s16.s32", row<packHalves<true>>());
  r.add("cvt.pack.sat", "u8.s32.b32", row<pack<8, false>>());
  r.add("cvt.pack.sat", "s8.s32.b32", row<pack<8, true>>());
  r.add("cvt.pack.sat", "u4.s32.b32", row<pack<4, false>>());
  r.add("cvt.pack.sat", "s4.s32.b32", row<pack<4, true>>());
  r.add("cvt.pack.sat", "u2.s32.b32", row<pack<2, false>>());
  r.add("cvt.pack.sat", "s2.s32.b32", row<pack<2, true>>());
  video<uint8_t>(r, "u8x4");
  video<int8_t>(r, "s8x4");
  video<uint16_t>(r, "u16x2");
  video<int16_t>(r, "s16x2");
  r.add("vsum", "u8x4", row<sum<uint8_t>>());
  r.add("vsum", "u16x2", row<sum<uint16_t>>());
}

}  // namespace vgpu::emulator::VGPU_ISA
