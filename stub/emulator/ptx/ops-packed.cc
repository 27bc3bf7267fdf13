// Whole numbers packed in a register: pairs of 16 bits, and the video instructions' bytes and halves.
#include "lanes.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

template <class T> T add(T a, T b) { return static_cast<T>(a + b); }
template <class T> T min(T a, T b) { return a < b ? a : b; }
template <class T> T max(T a, T b) { return a > b ? a : b; }
template <class T> T minRelu(T a, T b) { return max<T>(min(a, b), 0); }
template <class T> T maxRelu(T a, T b) { return max<T>(max(a, b), 0); }

template <class T, auto F> uint32_t each16(uint32_t a, uint32_t b) {
  const auto lo = static_cast<uint16_t>(F(static_cast<T>(a), static_cast<T>(b)));
  const auto hi = static_cast<uint16_t>(F(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
  return lo | uint32_t{hi} << 16;
}

}  // namespace

void addPackedOps(Registry& r) {
  r.add("add", "u16x2", row<each16<uint16_t, add<uint16_t>>>());
  r.add("add", "s16x2", row<each16<int16_t, add<int16_t>>>());
  r.add("min", "u16x2", row<each16<uint16_t, min<uint16_t>>>());
  r.add("max", "u16x2", row<each16<uint16_t, max<uint16_t>>>());
  r.add("min", "s16x2", row<each16<int16_t, min<int16_t>>>());
  r.add("max", "s16x2", row<each16<int16_t, max<int16_t>>>());
  r.add("min.relu", "s16x2", row<each16<int16_t, minRelu<int16_t>>>());
  r.add("max.relu", "s16x2", row<each16<int16_t, maxRelu<int16_t>>>());
}

}  // namespace vgpu::emulator::VGPU_ISA
