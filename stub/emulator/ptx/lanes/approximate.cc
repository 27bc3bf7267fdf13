// The fast approximations. Each is computed in double precision and rounded once, well within the error bounds of PTX.
#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

float sinApprox(float a) { return canonical(static_cast<float>(__builtin_sin(a))); }
float cosApprox(float a) { return canonical(static_cast<float>(__builtin_cos(a))); }
float lg2Approx(float a) { return canonical(static_cast<float>(__builtin_log2(a))); }
float tanhApprox(float a) { return canonical(static_cast<float>(__builtin_tanh(a))); }
float rsqrtApprox(float a) { return canonical(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a)))); }

// 2^a = 2^n * 2^f with |f| <= 1/2; the polynomial is the series of exp(f ln 2), with a remainder below 2^-44.
float ex2Approx(float a) {
  const float clamped = a > 200.0f ? 200.0f : a < -200.0f ? -200.0f : a;
  const double whole =
      __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, static_cast<double>(clamped) + 0x1.8p52)) - 0x1.8p52;
  const double x = (static_cast<double>(clamped) - whole) * 0x1.62e42fefa39efp-1;
  double sum = 1.0 / 3628800;
  sum = sum * x + 1.0 / 362880;
  sum = sum * x + 1.0 / 40320;
  sum = sum * x + 1.0 / 5040;
  sum = sum * x + 1.0 / 720;
  sum = sum * x + 1.0 / 120;
  sum = sum * x + 1.0 / 24;
  sum = sum * x + 1.0 / 6;
  sum = sum * x + 0.5;
  sum = sum * x + 1.0;
  sum = sum * x + 1.0;
  const double scale =
      __builtin_bit_cast(double, static_cast<uint64_t>(static_cast<int64_t>(isNan(whole) ? 0 : whole) + 1023) << 52);
  return canonical(static_cast<float>(sum * scale));
}

// Division as a product with the flushed reciprocal: the reciprocal of numbers above 2^126 is zero (PTX ISA, div.approx), so infinity
// divided by them is a NaN.
float divApprox(float a, float b) {
  const uint32_t size = bitsOf(b) & 0x7fffffff;
  if (size > 0x7e800000 && size < 0x7f800000) return canonical(a * fromBits<float>(bitsOf(b) & 0x80000000));
  return canonical(a / b);
}

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 use only the upper 32 bits of the operand and return zero in the lower 32.
double upperHalf(double a) { return fromBits<double>(bitsOf(a) & 0xffffffff00000000); }
double flushDouble(double a) {
  return (bitsOf(a) & 0x7ff0000000000000) == 0 ? fromBits<double>(bitsOf(a) & 0x8000000000000000) : a;
}
double rcpGross(double a) { return upperHalf(flushDouble(1.0 / flushDouble(upperHalf(a)))); }
double rsqrtGross(double a) { return upperHalf(1.0 / __builtin_sqrt(flushDouble(upperHalf(a)))); }
double rsqrtDouble(double a) { return 1.0 / __builtin_sqrt(a); }

}  // namespace

void addApproximateOps(Registry& r) {
  r.add("sin.approx", "f32", row<sinApprox>());
  r.add("cos.approx", "f32", row<cosApprox>());
  r.add("lg2.approx", "f32", row<lg2Approx>());
  r.add("ex2.approx", "f32", row<ex2Approx>());
  r.add("tanh.approx", "f32", row<tanhApprox>());
  r.add("rsqrt.approx", "f32", row<rsqrtApprox>());
  r.add("div.approx", "f32", row<divApprox>());
  r.add("rcp.approx.ftz", "f64", row<rcpGross>());
  r.add("rsqrt.approx.ftz", "f64", row<rsqrtGross>());
  r.add("rsqrt.approx", "f64", row<rsqrtDouble>());
}

}  // namespace vgpu::emulator::VGPU_ISA
