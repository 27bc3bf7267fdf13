// mbarrier objects and asynchronous copies.
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

constexpr const char* asyncProlog = R"(
  .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar;
  mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd0, %rd2; mov.u32 %r1, s; mov.u32 %r2, bar;
  setp.eq.u32 %p0, %r0, 0;
)";

}  // namespace

TEST_CASE("an mbarrier completes a phase when all threads have arrived; waits by state and by parity") {
  Device device(kernelText(".param .u64 out", std::string(asyncProlog) + R"(
    @%p0 mbarrier.init.shared.b64 [%r2], 96;
    bar.sync 0;
    mov.u32 %r9, 0; mov.u32 %r10, 0;
  ROUND:
    shl.b32 %r3, %r0, 2; add.u32 %r4, %r1, %r3; add.u32 %r5, %r0, %r9; st.shared.u32 [%r4], %r5;
    mbarrier.arrive.shared.b64 %rd5, [%r2];
  WAIT:
    mbarrier.test_wait.shared.b64 %p1, [%r2], %rd5;
    @!%p1 bra WAIT;
    sub.u32 %r6, 95, %r0; shl.b32 %r6, %r6, 2; add.u32 %r6, %r1, %r6; ld.shared.u32 %r7, [%r6]; add.u32 %r10, %r10, %r7;
    mbarrier.arrive.release.cta.shared::cta.b64 _, [bar], 1;
  WAIT2:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 1;
    @!%p1 bra WAIT2;
    add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 5; @%p2 bra ROUND;
    st.global.u32 [%rd1], %r10; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint32_t>(96));
  device.launch.maxInstructions = 10'000'000;
  device("k", {{1, 1, 1}, {96, 1, 1}}, out);
  const auto result = device.download<uint32_t>(out, 96);
  for (uint32_t t = 0; t < 96; ++t) CHECK(result[t] == 5 * (95 - t) + 10);
}

TEST_CASE("transactions keep a phase open until their bytes have arrived") {
  Device device(kernelText(".param .u64 in, .param .u64 out", std::string(asyncProlog) + R"(
    ld.param.u64 %rd7, [in];
    @!%p0 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd5, [bar], 256;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;
    selp.u32 %r3, 1000, 0, %p1;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd7], 128, [bar];
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar], 0;
    selp.u32 %r4, 1000, 0, %p2; add.u32 %r3, %r3, %r4;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+128], [%rd7+128], 128, [bar];
    st.shared.u32 [s+512], %r3;
  READY:
    bar.sync 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar], 0;
    selp.u32 %r5, 100, 0, %p3;
    shl.b32 %r6, %r0, 2; add.u32 %r6, %r1, %r6; ld.shared.u32 %r7, [%r6]; ld.shared.u32 %r8, [s+512];
    add.u32 %r7, %r7, %r5; add.u32 %r7, %r7, %r8; st.global.u32 [%rd1], %r7; ret;
  )"));
  std::vector<uint32_t> in(64);
  for (uint32_t i = 0; i < 64; ++i) in[i] = i * i;
  const uint64_t input = device.upload(in), out = device.upload(std::vector<uint32_t>(64));
  device("k", {{1, 1, 1}, {64, 1, 1}}, input, out);
  const auto result = device.download<uint32_t>(out, 64);
  for (uint32_t t = 0; t < 64; ++t) CHECK(result[t] == t * t + 100);
}

TEST_CASE("clusterlaunchcontrol.try_cancel is always declined, and its barrier completes") {
  Device device(kernelText(".param .u64 out", std::string(asyncProlog) + R"(
    .reg .b32 %q<4>; .reg .b128 %response; st.shared.u32 [s], 7;
    @!%p0 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd5, [bar], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [s], [bar];
  READY:
    bar.sync 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar], 0;
    ld.shared.b128 %response, [s]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %response;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%q0, %q1, %q2, %q3}, %response;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %q0, %response;
    selp.u32 %r3, 1, 0, %p3; selp.u32 %r4, 2, 0, %p2; add.u32 %r3, %r3, %r4; st.global.u32 [%rd1], %r3; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint32_t>(64));
  device("k", {{1, 1, 1}, {64, 1, 1}}, out);
  for (const uint32_t value : device.download<uint32_t>(out, 64)) CHECK(value == 1);
}

TEST_CASE("cp.async copies 4 to 16 bytes, fills the rest with zeros, and is checked like any access") {
  const std::string body = std::string(asyncProlog) + R"(
    ld.param.u64 %rd7, [in]; shl.b32 %r3, %r0, 4; add.u32 %r4, %r1, %r3; mul.wide.u32 %rd8, %r0, 16; add.s64 %rd9, %rd7, %rd8;
    and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 1;
    @%p1 cp.async.cg.shared.global [%r4], [%rd9], 16;
    @!%p1 cp.async.ca.shared.global [%r4], [%rd9], 8, 4;
    cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    ld.shared.v2.u32 {%r6, %r7}, [%r4]; mad.lo.u32 %r6, %r7, 1000, %r6; st.global.u32 [%rd1], %r6; ret;
  )";
  Device device(kernelText(".param .u64 in, .param .u64 out", body));
  std::vector<uint32_t> in(128);
  for (uint32_t i = 0; i < 128; ++i) in[i] = i + 1;
  const uint64_t input = device.upload(in), out = device.upload(std::vector<uint32_t>(32));
  device("k", {}, input, out);
  const auto result = device.download<uint32_t>(out, 32);
  for (uint32_t t = 0; t < 32; ++t) CHECK(result[t] == 4 * t + 1 + (t & 1 ? (4 * t + 2) * 1000 : 0));
  CHECK(device.tryLaunch("k", {}, input + 256, out)->kind == Fault::Kind::illegalAddress);
}

TEST_CASE("cp.async reads as many bytes as its operand says, with or without a cache policy") {
  Device device(kernelText(".param .u64 in, .param .u64 out", std::string(asyncProlog) + R"(
    .reg .pred %ignored; ld.param.u64 %rd7, [in]; createpolicy.fractional.L2::evict_first.b64 %rd8, 1.0;
    and.b32 %r3, %r0, 7; shl.b32 %r4, %r3, 4; add.u32 %r4, %r1, %r4; setp.gt.u32 %ignored, %r3, 3;
    mov.u32 %r5, 0xffffffff; st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};
    cp.async.cg.shared.global.L2::cache_hint [%r4], [%rd7], 16, %r3, %rd8;
    cp.async.ca.shared.global.L2::cache_hint [%r4+512], [%rd7], 8, %ignored, %rd8;
    cp.async.ca.shared.global.L2::cache_hint [%r4+520], [%rd7], 8, %rd8;
    cp.async.wait_all; ld.shared.v2.u32 {%r6, %r7}, [%r4];
    ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r4+512];
    mul.wide.u32 %rd2, %r0, 32; add.s64 %rd1, %rd0, %rd2;
    st.global.v4.u32 [%rd1], {%r6, %r7, %r8, %r9}; st.global.v2.u32 [%rd1+16], {%r10, %r11}; ret;
  )"));
  const uint64_t input = device.upload(std::vector<uint32_t>(4, 0x01010101)), out = device.upload(std::vector<uint32_t>(64));
  device("k", {{1, 1, 1}, {8, 1, 1}}, input, out);
  const auto result = device.download<uint64_t>(out, 32);
  for (uint32_t t = 0; t < 8; ++t) {
    CAPTURE(t);
    CHECK(result[4 * t] == (0x0101010101010101 & ((uint64_t{1} << 8 * t) - 1)));
    CHECK(result[4 * t + 1] == (t > 3 ? 0 : 0x0101010101010101));
    CHECK(result[4 * t + 2] == 0x0101010101010101);
  }
}

}  // namespace vgpu::emulator
