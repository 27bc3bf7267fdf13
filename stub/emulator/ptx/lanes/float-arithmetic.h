// Float32 and float64 arithmetic in the host's current rounding mode. Each file that includes this has its own copies of the functions,
// because files that change the mode are compiled with other flags.
#pragma once

#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

template <class T>
T add(T a, T b) {
  return canonical(a + b);
}
template <class T>
T sub(T a, T b) {
  return canonical(a - b);
}
template <class T>
T mul(T a, T b) {
  return canonical(a * b);
}
template <class T>
T fma(T a, T b, T c) {
  return canonical(fusedMulAdd(a, b, c));
}
template <class T>
T div(T a, T b) {
  return canonical(a / b);
}
template <class T>
T rcp(T a) {
  return canonical(T{1} / a);
}
float sqrtFloat(float a) { return canonical(__builtin_sqrtf(a)); }
double sqrtDouble(double a) { return canonical(__builtin_sqrt(a)); }

}  // namespace
}  // namespace vgpu::emulator::VGPU_ISA
