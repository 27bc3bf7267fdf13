// Forms of old instructions that newer PTX versions added.
#include <cmath>

#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

// out[i] = body(in[i]); operands are in %a, %b and %c, the result is in %d.
std::vector<uint32_t> each(const std::string& body, const std::vector<std::array<uint32_t, 3>>& in) {
  Device device(kernelText(".param .u64 in, .param .u64 out", R"(
    .reg .b16 %h<8>; .reg .b32 %a, %b, %c, %d, %t; .reg .f32 %f, %g; .reg .b64 %i, %o, %w;
    mov.u32 %t, %tid.x; ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    mul.wide.u32 %w, %t, 12; add.u64 %i, %i, %w; mul.wide.u32 %w, %t, 4;
    add.u64 %o, %o, %w; ld.global.u32 %a, [%i];
    ld.global.u32 %b, [%i+4]; ld.global.u32 %c, [%i+8]; mov.b32 %f, %a; mov.b32 %g, %b;
    mov.b32 {%h0, %h4}, %a; mov.b32 {%h1, %h5}, %b; mov.b32 {%h2, %h6}, %c;
  )" + body + " st.global.u32 [%o], %d; ret;"));
  const uint64_t out = device.upload(std::vector<uint32_t>(in.size()));
  device("k", {{1, 1, 1}, {static_cast<uint32_t>(in.size()), 1, 1}}, device.upload(in), out);
  return device.download<uint32_t>(out, in.size());
}

uint32_t bits(float value) { return __builtin_bit_cast(uint32_t, value); }

}  // namespace

TEST_CASE("cvt with satfinite gives the largest finite value for larger inputs, and a NaN for a NaN") {
  const std::vector<std::array<uint32_t, 3>> in{
      {bits(1e9f), bits(-1e9f)}, {bits(INFINITY), bits(1.0f)}, {0x7fc12345, bits(65504.0f)}};
  CHECK(each("cvt.rn.satfinite.f16x2.f32 %d, %f, %g;", in) == std::vector<uint32_t>{0x7bfffbff, 0x7bff3c00, 0x7fff7bff});
  CHECK(each("cvt.rn.satfinite.relu.f16x2.f32 %d, %f, %g;", in) == std::vector<uint32_t>{0x7bff0000, 0x7bff3c00, 0x7fff7bff});
  CHECK(each("cvt.rn.satfinite.bf16x2.f32 %d, %f, %g;", {{bits(3.4e38f), bits(-INFINITY)}}) == std::vector<uint32_t>{0x7f7fff7f});
  CHECK(each("cvt.rn.satfinite.f16.f32 %h0, %f; cvt.u32.u16 %d, %h0;", in) == std::vector<uint32_t>{0x7bff, 0x7bff, 0x7fff});
  CHECK(each("cvt.rna.satfinite.tf32.f32 %d, %f;", {{bits(INFINITY)}, {0xff7fffff}, {bits(2.0f)}}) ==
        std::vector<uint32_t>{0x7f7fe000, 0xff7fe000, bits(2.0f)});
  CHECK(each("cvt.rz.relu.tf32.f32 %d, %f;", {{bits(-2.0f)}, {0x3f801fff}}) == std::vector<uint32_t>{0, 0x3f800000});
}

TEST_CASE("fma with oob gives zero if a factor is the NaN that out-of-bounds copies fill with") {
  // 2 * 3 + 1 in the lower half; in the upper half a factor is that NaN, or the addend is, or a factor is the canonical NaN.
  const std::vector<std::array<uint32_t, 3>> halves{
      {0x7ff74000, 0x42004200, 0x3c003c00},
      {0x42004000, 0xfff74200, 0x3c003c00},
      {0x42004000, 0x42004200, 0x7ff73c00},
      {0x7fff4000, 0x42004200, 0x3c003c00}};
  CHECK(each("fma.rn.oob.f16x2 %d, %a, %b, %c;", halves) == std::vector<uint32_t>{0x00004700, 0x00004700, 0x7fff4700, 0x7fff4700});
  CHECK(each("fma.rn.oob.relu.f16x2 %d, %a, %b, %c;", {{0x7ff74000, 0x3c00c200, 0x3c003c00}}) == std::vector<uint32_t>{0});
  CHECK(each("fma.rn.oob.bf16 %h3, %h4, %h5, %h6; cvt.u32.u16 %d, %h3;",
             {{0x7ff70000, 0x3f800000, 0x3f800000}, {0x40000000, 0x40400000, 0x3f800000}}) == std::vector<uint32_t>{0, 0x40e0});
}

TEST_CASE("min and max of halves with xorsign and abs compare magnitudes, and take the sign of the product") {
  const std::vector<std::array<uint32_t, 3>> in{{0xc0003c00, 0x3c00c200}, {0xbc00bc00, 0xc0007fff}};
  CHECK(each("min.xorsign.abs.f16x2 %d, %a, %b;", in) == std::vector<uint32_t>{0xbc00bc00, 0x3c00bc00});
  CHECK(each("max.NaN.xorsign.abs.f16x2 %d, %a, %b;", in) == std::vector<uint32_t>{0xc000c200, 0x40007fff});
  CHECK(each("max.xorsign.abs.bf16 %h3, %h0, %h1; cvt.u32.u16 %d, %h3;", {{0xbf80, 0x4000}}) == std::vector<uint32_t>{0xc000});
}

TEST_CASE("mov moves vectors whose registers overlap") {
  CHECK(each("mov.v2.b32 {%a, %b}, {%b, %a}; mad.lo.u32 %d, %a, 100, %b;", {{3, 5}}) == std::vector<uint32_t>{503});
  CHECK(each("mov.v4.u32 {%a, %b, %c, %d}, {%b, %c, %a, %a}; mad.lo.u32 %a, %a, 10, %b; mad.lo.u32 %a, %a, 10, %c; mad.lo.u32 "
             "%d, %a, 10, %d;",
             {{1, 2, 3}}) == std::vector<uint32_t>{2311});
}

TEST_CASE("cache policies can be created and passed on") {
  CHECK(each("createpolicy.fractional.L2::evict_last.b64 %w, 0.5; st.global.L2::cache_hint.u32 [%o], %a, %w; mov.u32 %d, %a;",
             {{7}}) == std::vector<uint32_t>{7});
}

}  // namespace vgpu::emulator
