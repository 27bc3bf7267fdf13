// Integer arithmetic of two operands, for lanes, collectives and atomics. Each file that includes this has its own copies of the functions,
// because some files are compiled once for each instruction set (see lane-op.h for the consequences).
#pragma once

#include <cstdint>
#include <type_traits>

namespace vgpu::emulator {
namespace {

// Wide enough for the product of two 16-bit values without overflow of int.
template <class T>
using Modular = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
}
template <class T>
T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
T most(T a, T b) {
  return a > b ? a : b;
}
template <class T>
T bitAnd(T a, T b) {
  return a & b;
}
template <class T>
T bitOr(T a, T b) {
  return a | b;
}
template <class T>
T bitXor(T a, T b) {
  return a ^ b;
}

}  // namespace
}  // namespace vgpu::emulator
