// Control flow: divergence and reconvergence, calls, recursion, forward progress of diverged lanes, barriers.
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

constexpr const char* outParameter = ".param .u64 out";
// %rd1 is the address of this thread's word in `out`, %r0 its linear index in the block.
constexpr const char* threadProlog = R"(
  .reg .pred %p<16>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd0, [out];
  mul.wide.u32 %rd2, %r0, 4;
  add.s64 %rd1, %rd0, %rd2;
)";

std::vector<uint32_t> runThreads(const std::string& body, uint32_t threads, const std::string& before = "") {
  Device device(kernelText(outParameter, threadProlog + body, before));
  const uint64_t out = device.upload(std::vector<uint32_t>(threads));
  device.launch.maxInstructions = 100'000'000;
  device("k", {{1, 1, 1}, {threads, 1, 1}}, out);
  return device.download<uint32_t>(out, threads);
}

}  // namespace

TEST_CASE("lanes that iterate a loop a different number of times leave it with their own counts") {
  const auto result = runThreads(R"(
    mov.u32 %r1, 0; mov.u32 %r2, 0;
  LOOP:
    setp.ge.u32 %p1, %r1, %r0;
    @%p1 bra DONE;
    add.u32 %r1, %r1, 1;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra LOOP;          // continue
    add.u32 %r2, %r2, 1;
    setp.gt.u32 %p3, %r2, 20;
    @%p3 bra DONE;          // break
    bra LOOP;
  DONE:
    activemask.b32 %r4;
    popc.b32 %r5, %r4;
    shl.b32 %r5, %r5, 16;
    or.b32 %r2, %r2, %r5;
    st.global.u32 [%rd1], %r2;
    ret;
  )",
                                 64);
  for (uint32_t t = 0; t < 64; ++t) {
    CHECK((result[t] & 0xffff) == std::min((t + 1) / 2, 21u));
    CHECK((result[t] >> 16) == 32);  // all lanes are converged again behind the loop
  }
}

TEST_CASE("an early return of some lanes does not affect the others") {
  const auto result = runThreads(R"(
    setp.lt.u32 %p1, %r0, 10;
    @!%p1 bra ELSE;
    setp.lt.u32 %p2, %r0, 3;
    @%p2 bra OUT;
    mov.u32 %r2, 100;
    bra JOIN;
  ELSE:
    mov.u32 %r2, 200;
  JOIN:
    activemask.b32 %r4;
    popc.b32 %r5, %r4;
    add.u32 %r2, %r2, %r5;
    st.global.u32 [%rd1], %r2;
  OUT:
    ret;
  )",
                                 32);
  for (uint32_t t = 0; t < 32; ++t) CHECK(result[t] == (t < 3 ? 0u : t < 10 ? 129u : 229u));
}

TEST_CASE("a lane may spin for a lock that another lane of its warp holds") {
  Device device(kernelText(outParameter, std::string(threadProlog) + R"(
  SPIN:
    atom.global.cas.b32 %r1, [%rd0], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra SPIN;
    ld.volatile.global.u32 %r2, [%rd0+4];
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%rd0+4], %r2;
    membar.gl;
    atom.global.exch.b32 %r3, [%rd0], 0;
    ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint32_t>(2));
  device.launch.maxInstructions = 1'000'000'000;
  device.launch.workers = 2;
  device("k", {{2, 1, 1}, {64, 1, 1}}, out);
  CHECK(device.download<uint32_t>(out, 2)[1] == 128);
}

TEST_CASE("a lane may wait for a value that another lane writes behind the branch at which they diverged") {
  const auto result = runThreads(R"(
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra WRITE;
  WAIT:
    ld.volatile.global.u32 %r2, [%rd0+124];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra WAIT;
    bra DONE;
  WRITE:
    mov.u32 %r2, 5;
  DONE:
    st.volatile.global.u32 [%rd1], %r2;
    ret;
  )",
                                 32);
  for (const uint32_t value : result) CHECK(value == 5);
}

TEST_CASE("brx.idx branches to each lane's own target") {
  const auto result = runThreads(R"(
    and.b32 %r1, %r0, 3;
    TABLE: .branchtargets A, B, C, B;
    brx.idx %r1, TABLE;
  A: mov.u32 %r2, 10; bra DONE;
  B: mov.u32 %r2, 20; bra DONE;
  C: mov.u32 %r2, 30;
  DONE:
    activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd1], %r2; ret;
  )",
                                 32);
  constexpr uint32_t expected[] = {42, 52, 62, 52};
  for (uint32_t t = 0; t < 32; ++t) CHECK(result[t] == expected[t & 3]);
}

TEST_CASE("in a recursion each lane has its own frames") {
  const auto result = runThreads(R"(
    { .param .b32 a; .param .b32 r;
      st.param.b32 [a], %r0; call.uni (r), ack, (a); ld.param.b32 %r1, [r]; }
    st.global.u32 [%rd1], %r1; ret;
  )",
                                 20, R"(
  .func (.param .b32 r) ack(.param .b32 n) {
    .local .align 4 .b8 frame[16];
    .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<3>;
    ld.param.u32 %r1, [n];
    mov.u64 %rd1, frame;
    st.local.u32 [%rd1+4], %r1;
    setp.lt.s32 %p1, %r1, 2;
    @%p1 bra BASE;
    sub.s32 %r2, %r1, 1;
    { .param .b32 a; .param .b32 q; st.param.b32 [a], %r2; call.uni (q), ack, (a); ld.param.b32 %r3, [q]; }
    ld.local.u32 %r4, [%rd1+4];
    sub.s32 %r4, %r4, 2;
    { .param .b32 a; .param .b32 q; st.param.b32 [a], %r4; call.uni (q), ack, (a); ld.param.b32 %r5, [q]; }
    add.s32 %r1, %r3, %r5;
  BASE:
    st.param.b32 [r], %r1;
    ret;
  })");
  uint32_t a = 0, b = 1;
  for (uint32_t t = 0; t < 20; ++t) {
    CHECK(result[t] == a);
    b += a;
    a = b - a;
  }
}

TEST_CASE("an indirect call with different targets per lane calls each of them, and the lanes reconverge behind it") {
  const auto result = runThreads(R"(
    and.b32 %r1, %r0, 1;
    mul.wide.u32 %rd3, %r1, 8;
    mov.u64 %rd4, table; add.s64 %rd4, %rd4, %rd3;
    ld.global.u64 %rd5, [%rd4];
    { .param .b32 a; .param .b32 q; st.param.b32 [a], %r0;
      P: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (q), %rd5, (a), P; ld.param.b32 %r2, [q]; }
    activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %r2, %r3, 1000, %r2;
    st.global.u32 [%rd1], %r2; ret;
  )",
                                 32, R"(
  .func (.param .b32 r) plus(.param .b32 n) { .reg .b32 %r<3>; ld.param.u32 %r1, [n]; add.u32 %r1, %r1, 7; st.param.b32 [r], %r1; ret; }
  .func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %r<3>; ld.param.u32 %r1, [n]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }
  .global .u64 table[2] = {plus, twice};)");
  for (uint32_t t = 0; t < 32; ++t) CHECK(result[t] == 32000 + (t & 1 ? 2 * t : t + 7));
}

TEST_CASE("a struct is passed to a function and returned byte by byte") {
  const auto result = runThreads(R"(
    .reg .b16 %h<4>;
    { .param .align 8 .b8 s[16]; .param .align 8 .b8 q[16];
      cvt.u16.u32 %h1, %r0;
      st.param.b8 [s], %h1; st.param.b8 [s+1], 3; st.param.b16 [s+2], -2; st.param.b32 [s+4], 70000; st.param.b64 [s+8], 0x100000002;
      call.uni (q), mirror, (s);
      ld.param.s8 %r1, [q]; ld.param.u8 %r2, [q+1]; ld.param.s16 %r3, [q+2]; ld.param.u32 %r4, [q+4]; ld.param.b64 %rd5, [q+8]; }
    cvt.u32.u64 %r5, %rd5; shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r6, %rd5;
    add.s32 %r1, %r1, %r2; add.s32 %r1, %r1, %r3; add.s32 %r1, %r1, %r4; add.s32 %r1, %r1, %r5; mad.lo.s32 %r1, %r6, 1000000, %r1;
    st.global.u32 [%rd1], %r1; ret;
  )",
                                 32, R"(
  .func (.param .align 8 .b8 r[16]) mirror(.param .align 8 .b8 s[16]) {
    .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u8 %h1, [s]; add.u16 %h1, %h1, 1; st.param.b8 [r], %h1;
    ld.param.u8 %h2, [s+1]; st.param.b8 [r+1], %h2;
    ld.param.u16 %h3, [s+2]; st.param.b16 [r+2], %h3;
    ld.param.v2.b32 {%r1, %r2}, [s+8]; st.param.v2.b32 [r+8], {%r1, %r2};
    ld.param.b32 %r3, [s+4]; st.param.b32 [r+4], %r3;
    ret; })");
  for (uint32_t t = 0; t < 32; ++t) CHECK(result[t] == t + 1 + 3 - 2 + 70000 + 2 + 1000000);
}

TEST_CASE("a barrier orders the warps of a block, and does not wait for threads that have ended") {
  const auto result = runThreads(R"(
    .shared .align 4 .b8 s[1024];
    setp.ge.u32 %p1, %r0, 200;
    @%p1 ret;
    mov.u32 %r1, s;
    shl.b32 %r2, %r0, 2;
    add.u32 %r3, %r1, %r2;
    st.shared.u32 [%r3], %r0;
    bar.sync 0;
    sub.u32 %r4, 199, %r0;
    shl.b32 %r4, %r4, 2; add.u32 %r4, %r1, %r4;
    ld.shared.u32 %r5, [%r4];
    bar.red.popc.u32 %r6, 1, %p1;
    setp.gt.u32 %p2, %r0, 100;
    bar.red.popc.u32 %r6, 1, %p2;
    bar.red.and.pred %p3, 2, !%p1;
    bar.red.or.pred %p4, 3, %p2;
    selp.u32 %r7, 1000, 0, %p3; selp.u32 %r8, 2000, 0, %p4;
    mad.lo.u32 %r5, %r6, 10000, %r5; add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, %r8;
    st.global.u32 [%rd1], %r5; ret;
  )",
                                 256);
  for (uint32_t t = 0; t < 256; ++t) CHECK(result[t] == (t >= 200 ? 0 : 199 - t + 99 * 10000 + 3000));
}

TEST_CASE("bar.arrive and bar.sync let warps be producer and consumer") {
  const auto result = runThreads(R"(
    .shared .align 4 .b8 s[256];
    mov.u32 %r1, s; and.b32 %r2, %r0, 31; shl.b32 %r2, %r2, 2; add.u32 %r3, %r1, %r2;
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra CONSUME;
    st.shared.u32 [%r3], %r0;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    ld.shared.u32 %r4, [%r3];
    st.global.u32 [%rd1], %r4;
    ret;
  CONSUME:
    bar.sync 1, 64;
    ld.shared.u32 %r4, [%r3];
    add.u32 %r4, %r4, 100;
    st.shared.u32 [%r3], %r4;
    bar.arrive 2, 64;
    ret;
  )",
                                 64);
  for (uint32_t t = 0; t < 32; ++t) CHECK(result[t] == t + 100);
}

TEST_CASE("a predicate restricts any instruction to the lanes for which it is true") {
  const auto result = runThreads(R"(
    setp.lt.u32 %p1, %r0, 7;
    mov.u32 %r1, 1; mov.u64 %rd5, 1;
    @%p1 add.u32 %r1, %r1, 10;
    @!%p1 mul.wide.u32 %rd5, %r0, 3;
    @%p1 setp.lt.u32 %p1, %r0, 3;
    @%p1 ret;
    cvt.u32.u64 %r2, %rd5; add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd1], %r1; ret;
  )",
                                 32);
  for (uint32_t t = 0; t < 32; ++t) CHECK(result[t] == (t < 3 ? 0 : t < 7 ? 12 : 1 + 3 * t));
}

TEST_CASE("threads of a warp that are in different functions at the same time keep their registers") {
  // Thread 0 waits in `holds`, which has wide registers, until the others have been in `counts`, which has narrow ones.
  const std::string functions = R"(
    .func holds(.param .b64 p)
    {
      .reg .pred %p; .reg .b32 %now; .reg .b64 %a, %b, %c, %place;
      ld.param.b64 %place, [p];
      mov.b64 %a, 0x1111111122222222; mov.b64 %b, 0x3333333344444444; add.u64 %c, %a, %b;
    wait:
      ld.volatile.global.u32 %now, [%place+32];
      setp.lt.u32 %p, %now, 31;
      @%p bra wait;
      st.global.u64 [%place], %a; st.global.u64 [%place+8], %b; st.global.u64 [%place+16], %c;
      ret;
    }
    .func counts(.param .b64 p)
    {
      .reg .b32 %r<8>; .reg .b64 %place;
      ld.param.b64 %place, [p];
      mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; add.u32 %r3, %r2, 1; add.u32 %r4, %r3, 1; add.u32 %r5, %r4, 1;
      mul.lo.u32 %r6, %r5, %r4; mul.lo.u32 %r7, %r6, %r3;
      st.volatile.global.u32 [%place+40], %r7;
      atom.global.add.u32 %r1, [%place+32], 1;
      ret;
    })";
  Device device(kernelText(outParameter, std::string(threadProlog) + R"(
    setp.eq.u32 %p0, %r0, 0;
    @!%p0 bra OTHERS;
    { .param .b64 a; st.param.b64 [a], %rd0; call.uni holds, (a); }
    ret;
  OTHERS:
    { .param .b64 a; st.param.b64 [a], %rd0; call.uni counts, (a); }
    ret;
  )", functions));
  const uint64_t out = device.upload(std::vector<uint64_t>(8));
  device("k", {{1, 1, 1}, {32, 1, 1}}, out);
  CHECK(device.download<uint64_t>(out, 3) == std::vector<uint64_t>{0x1111111122222222, 0x3333333344444444, 0x4444444466666666});
}

TEST_CASE("grid-wide synchronization of a cooperative launch works with any number of worker threads") {
  // The code that cooperative groups emit for this_grid().sync().
  Device device(kernelText(outParameter, std::string(threadProlog) + R"(
    mov.u32 %r1, %envreg2; cvt.u64.u32 %rd3, %r1; mov.u32 %r2, %envreg1; cvt.u64.u32 %rd4, %r2; bfi.b64 %rd5, %rd4, %rd3, 32, 32;
    atom.global.add.u32 %r3, [%rd0], 1;
    barrier.sync 0;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra DONE;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %ctaid.x; setp.eq.u32 %p2, %r5, 0;
    mov.u32 %r6, -2147483647; sub.s32 %r7, %r6, %r4; selp.b32 %r8, %r7, 1, %p2;
    atom.add.release.gpu.u32 %r9, [%rd5+4], %r8;
  WAIT:
    ld.acquire.gpu.u32 %r10, [%rd5+4]; xor.b32 %r11, %r10, %r9; setp.gt.s32 %p3, %r11, -1;
    @%p3 bra WAIT;
  DONE:
    barrier.sync 0;
    mov.u32 %r12, %ctaid.x; mov.u32 %r13, %ntid.x; mad.lo.u32 %r14, %r12, %r13, %r0; mul.wide.u32 %rd6, %r14, 4; add.s64 %rd7, %rd0, %rd6;
    ld.global.u32 %r15, [%rd0]; st.global.u32 [%rd7+4], %r15; ret;
  )"));
  for (const int workers : {1, 2, 3}) {
    const uint64_t out = device.upload(std::vector<uint32_t>(1 + 20 * 64));
    device.launch.cooperative = true;
    device.launch.workers = workers;
    device("k", {{20, 1, 1}, {64, 1, 1}}, out);
    for (const uint32_t value : device.download<uint32_t>(out, 1 + 20 * 64)) REQUIRE(value == 20 * 64);
  }
}

TEST_CASE("blocks that wait for later blocks complete without a cooperative launch") {
  Device device(kernelText(outParameter, std::string(threadProlog) + R"(
    mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra SET;
  WAIT: ld.volatile.global.u32 %r2, [%rd0]; setp.ne.u32 %p2, %r2, 7; @%p2 bra WAIT; ret;
  SET: atom.global.add.u32 %r3, [%rd0], 1; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint32_t>(1));
  device("k", {{8, 1, 1}, {1, 1, 1}}, out);
  CHECK(device.download<uint32_t>(out, 1)[0] == 7);
}

TEST_CASE("a shuffled schedule gives the same results") {
  Device device(kernelText(outParameter, std::string(threadProlog) + "atom.global.add.u32 %r1, [%rd0], %r0; ret;"));
  for (const uint64_t seed : {0, 1, 99}) {
    const uint64_t out = device.upload(std::vector<uint32_t>(1));
    device.launch.schedule = seed;
    device("k", {{10, 3, 2}, {96, 1, 1}}, out);
    CHECK(device.download<uint32_t>(out, 1)[0] == 60u * 95 * 96 / 2);
  }
}

// The second warp completes the barrier and goes on.
TEST_CASE("a warp that polls for another warp's write yields to it after a few attempts") {
  for (const std::string attempt :
       {"ld.volatile.shared.u32 %r2, [flag];", "ld.acquire.cta.shared.u32 %r2, [flag];", "nanosleep.u32 100; ld.shared.u32 %r2, [flag];",
        "atom.shared.cas.b32 %r2, [flag], 1, 2;", "mbarrier.test_wait.parity.shared.b64 %q, [bar], 0; selp.u32 %r2, 1, 0, %q;"}) {
    CAPTURE(attempt);
    Device device(kernelText(".param .u64 out", R"(
      .shared .align 8 .b64 bar; .shared .align 4 .b32 flag; .reg .pred %p<2>, %q; .reg .b32 %r<5>; .reg .b64 %d<3>;
      ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r3, 0; setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32;
      @%p0 mbarrier.init.shared.b64 [bar], 1; bar.sync 0; @%p1 bra SET;
    AGAIN: add.u32 %r3, %r3, 1; )" + attempt + R"( setp.eq.u32 %p1, %r2, 0; @%p1 bra AGAIN;
      st.global.u32 [%d0], %r3; ret;
    SET: @!%p0 ret; st.volatile.shared.u32 [flag], 1; mbarrier.arrive.shared.b64 %d1, [bar]; ret;
    )"));
    const uint64_t out = device.upload(std::vector<uint32_t>(1));
    device("k", {{1, 1, 1}, {64, 1, 1}}, out);
    const uint32_t attempts = device.download<uint32_t>(out, 1)[0];
    CHECK(attempts > 1);
    CHECK(attempts < 20);
  }
}

}  // namespace vgpu::emulator
