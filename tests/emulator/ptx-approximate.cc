// Fast approximations stay within the errors that PTX allows.
#include <cmath>
#include <limits>

#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

struct Approximation {
  const char* instruction;
  double (*exact)(double);
  double relative, absolute;  // from the instruction's section in the PTX ISA
  double least, most;         // range of the operand
};

const Approximation approximations[] = {
    {"ex2.approx.f32", [](double x) { return std::exp2(x); }, 0x1p-22, 0, -126, 127},
    {"lg2.approx.f32", [](double x) { return std::log2(x); }, 0x1p-22, 0x1p-22, 0x1p-126, 1e38},
    {"rcp.approx.f32", [](double x) { return 1 / x; }, 0x1p-23, 0, -1e30, 1e30},
    {"rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }, 1.28e-7, 0, 0x1p-126, 1e38},
    {"sqrt.approx.f32", [](double x) { return std::sqrt(x); }, 0x1p-23, 0, 0x1p-126, 1e38},
    {"sin.approx.f32", [](double x) { return std::sin(x); }, 0x1p-23, 6.7e-7, -100, 100},
    {"cos.approx.f32", [](double x) { return std::cos(x); }, 0x1p-23, 6.7e-7, -100, 100},
    {"tanh.approx.f32", [](double x) { return std::tanh(x); }, 0x1p-11, 0, -20, 20},
};

}  // namespace

TEST_CASE("approximations stay within the errors that PTX states") {
  std::mt19937_64 random(7);
  for (const Approximation& each : approximations) {
    CAPTURE(each.instruction);
    Device device(kernelText(".param .u64 data", std::string(R"(
      .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %d<4>;
      ld.param.u64 %d0, [data]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1; ld.global.f32 %f0, [%d2];
    )") + each.instruction + " %f1, %f0; st.global.f32 [%d2], %f1; ret;"));
    std::uniform_real_distribution<double> uniform(each.least, each.most);
    std::vector<float> in(1024);
    for (float& value : in) value = static_cast<float>(uniform(random));
    const uint64_t data = device.upload(in);
    device("k", {{1, 1, 1}, {1024, 1, 1}}, data);
    const auto result = device.download<float>(data, in.size());
    double worst = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const double exact = each.exact(in[i]), allowed = std::abs(exact) * each.relative + each.absolute;
      worst = std::max(worst, std::abs(result[i] - exact) / allowed);
    }
    CHECK(worst <= 1.0);
  }
}

TEST_CASE("approximations of special operands") {
  Device device(kernelText(".param .u64 data", R"(
    .reg .f32 %f<4>; .reg .b64 %d<2>; ld.param.u64 %d0, [data];
    ld.global.f32 %f0, [%d0]; ex2.approx.f32 %f1, %f0; st.global.f32 [%d0+16], %f1; rcp.approx.f32 %f1, %f0; st.global.f32 [%d0+20], %f1;
    ld.global.f32 %f0, [%d0+4]; lg2.approx.f32 %f1, %f0; st.global.f32 [%d0+24], %f1; rsqrt.approx.f32 %f1, %f0; st.global.f32 [%d0+28], %f1;
    ld.global.f32 %f0, [%d0+8]; sqrt.approx.f32 %f1, %f0; st.global.f32 [%d0+32], %f1; sin.approx.f32 %f1, %f0; st.global.f32 [%d0+36], %f1; ret;
  )"));
  const float infinity = std::numeric_limits<float>::infinity();
  const uint64_t data = device.upload(std::vector<float>{-infinity, 0.0f, -1.0f, 0, 0, 0, 0, 0, 0, 0});
  device("k", {{1, 1, 1}, {1, 1, 1}}, data);
  const auto result = device.download<float>(data, 10);
  CHECK(result[4] == 0.0f);
  CHECK(result[5] == 0.0f);
  CHECK(std::signbit(result[5]));
  CHECK(result[6] == -infinity);
  CHECK(result[7] == infinity);
  CHECK(std::isnan(result[8]));
  CHECK(result[9] == doctest::Approx(std::sin(-1.0)));
}

TEST_CASE("arithmetic modifiers may follow the type") {
  Device device(kernelText(".param .u64 data", R"(
    .reg .f32 %f<4>; .reg .b32 %r<4>; .reg .b64 %d0; ld.param.u64 %d0, [data]; ld.global.v2.f32 {%f0, %f1}, [%d0];
    lg2.approx.f32.ftz %f2, %f0; st.global.f32 [%d0+8], %f2; ex2.f32.approx %f2, %f0; st.global.f32 [%d0+12], %f2;
    rcp.approx.f32.ftz %f2, %f1; st.global.f32 [%d0+16], %f2; add.rz.f32.ftz.sat %f2, %f0, %f0; st.global.f32 [%d0+20], %f2;
    mul.f32.rn %f2, %f0, %f1; st.global.f32 [%d0+24], %f2; mul.f32.ftz.rp %f2, %f0, %f1; st.global.f32 [%d0+28], %f2;
    mov.u32 %r0, 0x7fffffff; add.s32.sat %r1, %r0, %r0; st.global.u32 [%d0+32], %r1;
    cvt.rni.s32.f32 %r2, %f0; st.global.u32 [%d0+36], %r2; ret;
  )"));
  const float infinity = std::numeric_limits<float>::infinity();
  const uint64_t data = device.upload(std::vector<float>{8, 0x1p-130f, 0, 0, 0, 0, 0, 0, 0, 0});
  device("k", {{1, 1, 1}, {1, 1, 1}}, data);
  CHECK(device.download<float>(data + 8, 6) == std::vector<float>{3, 256, infinity, 1, 0x1p-127f, 0});
  CHECK(device.download<uint32_t>(data + 32, 2) == std::vector<uint32_t>{0x7fffffff, 8});
}

TEST_CASE("f32x2 instructions add and multiply the two floats of a 64-bit register separately") {
  Device device(kernelText(".param .u64 data", R"(
    .reg .b64 %d<6>; ld.param.u64 %d0, [data]; ld.global.v2.b64 {%d1, %d2}, [%d0]; ld.global.b64 %d3, [%d0+16];
    add.rn.f32x2 %d4, %d1, %d2; st.global.b64 [%d0+24], %d4; sub.f32x2 %d4, %d1, %d2; st.global.b64 [%d0+32], %d4;
    mul.rz.ftz.f32x2 %d4, %d1, %d3; st.global.b64 [%d0+40], %d4; fma.rp.f32x2 %d1, %d1, %d2, %d3; st.global.b64 [%d0+48], %d1; ret;
  )"));
  const float small = 0x1p-130f, above = std::nextafter(1.0f, 2.0f);
  const uint64_t data = device.upload(std::vector<float>{small, 3, 0.5f, 4, 1, above, 0, 0, 0, 0, 0, 0, 0, 0});
  device("k", {{1, 1, 1}, {1, 1, 1}}, data);
  CHECK(device.download<float>(data + 24, 8) ==
        std::vector<float>{0.5f, 7, -0.5f, -1, 0, std::nextafter(3.0f, 4.0f), above, std::nextafter(13.0f, 14.0f)});
}

TEST_CASE("min and max accept three floats") {
  Device device(kernelText(".param .u64 data", R"(
    .reg .f32 %f<6>; .reg .b64 %d0; ld.param.u64 %d0, [data]; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d0];
    max.f32 %f4, %f0, %f1, %f2; st.global.f32 [%d0+16], %f4; min.ftz.f32 %f4, %f0, %f1, %f2; st.global.f32 [%d0+20], %f4;
    max.f32 %f4, %f3, %f0, %f1; st.global.f32 [%d0+24], %f4; min.NaN.f32 %f4, %f0, %f1, %f3; st.global.f32 [%d0+28], %f4;
    max.xorsign.abs.f32 %f0, %f0, %f1, %f2; st.global.f32 [%d0+32], %f0;
    max.f32 %f2, %f1, 0fC0000000, %f1; st.global.f32 [%d0+36], %f2; ret;
  )"));
  const uint64_t data = device.upload(std::vector<float>{1, -3, 2, NAN, 0, 0, 0, 0, 0, 0});
  device("k", {{1, 1, 1}, {1, 1, 1}}, data);
  const auto result = device.download<float>(data + 16, 6);
  CHECK(std::vector(result.begin(), result.begin() + 3) == std::vector<float>{2, -3, 1});
  CHECK(std::isnan(result[3]));
  CHECK(result[4] == -3);
  CHECK(result[5] == -2);
}

}  // namespace vgpu::emulator
