// Arithmetic and conversions that round toward zero, down or up: the loop runs in another rounding mode of the host.
#include "stub/emulator/ptx/lanes/float-arithmetic.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

template <class From, class To>
To convert(From a) {
  return static_cast<To>(a);
}
float narrowToFloat(double a) { return static_cast<float>(a); }

constexpr uint32_t roundingBits = 0x6000;  // MXCSR
constexpr uint32_t bitsFor(Rounding mode) {
  return mode == Rounding::zero ? 0x6000 : mode == Rounding::up ? 0x4000 : 0x2000;
}

// Calls through a volatile pointer, so that the compiler cannot move the loop across the change of the mode.
template <Rounding Mode, auto F>
struct Rounded {
  static const Inst* run(Warp& warp, const Inst* inst) {
    uint32_t before;
    __asm__ volatile("stmxcsr %0" : "=m"(before)::"memory");
    const uint32_t wanted = (before & ~roundingBits) | bitsFor(Mode);
    __asm__ volatile("ldmxcsr %0" ::"m"(wanted) : "memory");
    const Handler volatile loop = LaneOp<F>::run;
    const Inst* following = loop(warp, inst);
    __asm__ volatile("ldmxcsr %0" ::"m"(before) : "memory");
    return following;
  }
};

template <Rounding Mode, auto F>
Row rounded() {
  Row made = row<F>();
  made.handler = Rounded<Mode, F>::run;
  return made;
}

template <Rounding Mode, class T>
void arithmetic(Registry& r, const char* t) {
  r.add("add", t, rounded<Mode, add<T>>());
  r.add("sub", t, rounded<Mode, sub<T>>());
  r.add("mul", t, rounded<Mode, mul<T>>());
  r.add("fma", t, rounded<Mode, fma<T>>());
  r.add("div", t, rounded<Mode, div<T>>());
  r.add("rcp", t, rounded<Mode, rcp<T>>());
}

template <Rounding Mode>
void all(Registry& r, const char* const (&names)[9]) {
  arithmetic<Mode, float>(r, names[0]);
  arithmetic<Mode, double>(r, names[1]);
  r.add("sqrt", names[0], rounded<Mode, sqrtFloat>());
  r.add("sqrt", names[1], rounded<Mode, sqrtDouble>());
  r.add("cvt", names[2], rounded<Mode, convert<uint32_t, float>>());
  r.add("cvt", names[3], rounded<Mode, convert<int32_t, float>>());
  r.add("cvt", names[4], rounded<Mode, convert<uint64_t, float>>());
  r.add("cvt", names[5], rounded<Mode, convert<int64_t, float>>());
  r.add("cvt", names[6], rounded<Mode, convert<uint64_t, double>>());
  r.add("cvt", names[7], rounded<Mode, convert<int64_t, double>>());
  r.add("cvt", names[8], rounded<Mode, narrowToFloat>());
}

}  // namespace

void addRoundingOps(Registry& r) {
  all<Rounding::zero>(r, {"rz.f32", "rz.f64", "rz.f32.u32", "rz.f32.s32", "rz.f32.u64", "rz.f32.s64", "rz.f64.u64",
                          "rz.f64.s64", "rz.f32.f64"});
  all<Rounding::down>(r, {"rm.f32", "rm.f64", "rm.f32.u32", "rm.f32.s32", "rm.f32.u64", "rm.f32.s64", "rm.f64.u64",
                          "rm.f64.s64", "rm.f32.f64"});
  all<Rounding::up>(r, {"rp.f32", "rp.f64", "rp.f32.u32", "rp.f32.s32", "rp.f32.u64", "rp.f32.s64", "rp.f64.u64",
                        "rp.f64.s64", "rp.f32.f64"});
}

}  // namespace vgpu::emulator::VGPU_ISA
