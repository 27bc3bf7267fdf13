// Collective operations of a warp: by all lanes, by some, and from different places in the text.
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

constexpr const char* warpProlog = R"(
  .reg .pred %p<16>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
  mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd0, %rd2;
)";

std::vector<uint32_t> runWarp(const std::string& body, uint32_t threads = 32) {
  Device device(kernelText(".param .u64 out", warpProlog + body));
  const uint64_t out = device.upload(std::vector<uint32_t>(threads));
  device.launch.maxInstructions = 10'000'000;
  device("k", {{1, 1, 1}, {threads, 1, 1}}, out);
  return device.download<uint32_t>(out, threads);
}

}  // namespace

TEST_CASE("shfl in its four modes, with segments") {
  struct Mode {
    const char* name;
    int (*source)(int lane, int by, int width);
  };
  const Mode modes[] = {
      {"up", [](int lane, int by, int width) { return lane % width >= by ? lane - by : lane; }},
      {"down", [](int lane, int by, int width) { return lane % width + by < width ? lane + by : lane; }},
      {"bfly", [](int lane, int by, int width) { return (lane ^ by) / width <= lane / width ? lane ^ by : lane; }},
      {"idx", [](int lane, int by, int width) { return lane / width * width + by % width; }},
  };
  for (const Mode& mode : modes)
    for (const int width : {4, 16, 32})
      for (const int by : {0, 1, 3, 17}) {
        CAPTURE(mode.name);
        CAPTURE(width);
        CAPTURE(by);
        const int c = ((32 - width) << 8) | (mode.name == std::string("up") ? 0 : 31);
        const auto result =
            runWarp("mul.lo.u32 %r1, %r0, 10; shfl.sync." + std::string(mode.name) + ".b32 %r1|%p1, %r1, " +
                    std::to_string(by) + ", " + std::to_string(c) + ", -1; st.global.u32 [%rd1], %r1; ret;");
        for (int lane = 0; lane < 32; ++lane)
          CHECK(result[static_cast<size_t>(lane)] == static_cast<uint32_t>(10 * mode.source(lane, by, width)));
      }
}

// Lanes with the same remainder by 3 form a group, as in cooperative groups' labeled_partition.
constexpr const char* groupsBody = "rem.u32 %r2, %r0, 3; match.any.sync.b32 %r1, %r2, -1;\n";

TEST_CASE("lanes that give different member masks at one instruction form separate groups") {
  const auto sums =
      runWarp(std::string(groupsBody) + "redux.sync.add.u32 %r3, %r0, %r1; st.global.u32 [%rd1], %r3; ret;");
  const auto votes =
      runWarp(std::string(groupsBody) +
              "setp.lt.u32 %p1, %r0, 9; vote.sync.ballot.b32 %r3, %p1, %r1; st.global.u32 [%rd1], %r3; ret;");
  const auto leaders = runWarp(std::string(groupsBody) + "elect.sync %r3|%p1, %r1; st.global.u32 [%rd1], %r3; ret;");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t sum = 0, vote = 0;
    for (uint32_t other = lane % 3; other < 32; other += 3) sum += other, vote |= uint32_t{other < 9} << other;
    CHECK_EQ(sums[lane], sum);
    CHECK_EQ(votes[lane], vote);
    CHECK_EQ(leaders[lane], lane % 3);
  }
}

TEST_CASE("groups wait for members that arrive at another instruction") {
  // The lower half executes one redux, the upper half another; every group has lanes in both.
  const auto sums = runWarp(std::string(groupsBody) + R"(
    setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW;
    redux.sync.add.u32 %r3, %r0, %r1; bra DONE;
  LOW: redux.sync.add.u32 %r3, %r0, %r1;
  DONE: st.global.u32 [%rd1], %r3; ret;)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t sum = 0;
    for (uint32_t other = lane % 3; other < 32; other += 3) sum += other;
    CHECK_EQ(sums[lane], sum);
  }
}

TEST_CASE("vote, match, redux, elect and activemask work on some of the lanes") {
  const auto result = runWarp(R"(
    setp.lt.u32 %p1, %r0, 20; @!%p1 ret;
    mov.u32 %r1, 0xfffff; rem.u32 %r2, %r0, 3; setp.eq.u32 %p2, %r2, 1;
    vote.sync.ballot.b32 %r3, %p2, %r1; popc.b32 %r3, %r3;
    vote.sync.all.pred %p3, %p2, %r1; vote.sync.any.pred %p4, %p2, %r1; vote.sync.uni.pred %p5, %p1, %r1; vote.sync.all.pred %p6, !%p2, %r1;
    match.any.sync.b32 %r4, %r2, %r1; popc.b32 %r4, %r4; match.all.sync.b32 %r5|%p7, 7, %r1; popc.b32 %r5, %r5;
    redux.sync.add.u32 %r6, %r0, %r1; redux.sync.min.s32 %r7, %r2, %r1; redux.sync.max.u32 %r8, %r0, %r1; redux.sync.xor.b32 %r9, %r0, %r1;
    elect.sync %r10|%p8, %r1; activemask.b32 %r11; popc.b32 %r11, %r11;
    selp.u32 %r12, 1, 0, %p3; selp.u32 %r13, 2, 0, %p4; selp.u32 %r14, 4, 0, %p5; selp.u32 %r15, 8, 0, %p6; selp.u32 %r16, 16, 0, %p7; selp.u32 %r17, 32, 0, %p8;
    add.u32 %r12, %r12, %r13; add.u32 %r12, %r12, %r14; add.u32 %r12, %r12, %r15; add.u32 %r12, %r12, %r16; add.u32 %r12, %r12, %r17;
    add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6; add.u32 %r3, %r3, %r7; add.u32 %r3, %r3, %r8; add.u32 %r3, %r3, %r9; add.u32 %r3, %r3, %r10; add.u32 %r3, %r3, %r11;
    mad.lo.u32 %r3, %r12, 10000, %r3; st.global.u32 [%rd1], %r3; ret;
  )");
  uint32_t all = 0;
  for (uint32_t lane = 0; lane < 20; ++lane) all ^= lane;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t matching = lane % 3 == 2 ? 6 : 7;
    const uint32_t expected =
        7 + matching + 20 + 190 + 0 + 19 + all + 0 + 20 + 10000 * (2 + 4 + 16 + (lane == 0 ? 32 : 0));
    CHECK(result[lane] == (lane < 20 ? expected : 0));
  }
}

TEST_CASE("lanes take part in one shuffle from different places in the text") {
  const auto result = runWarp(R"(
    and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;
    add.u32 %r2, %r0, 100; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; bra DONE;
  EVEN:
    add.u32 %r2, %r0, 200; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;
  DONE:
    bar.warp.sync -1; st.global.u32 [%rd1], %r3; ret;
  )");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(result[lane] == ((lane ^ 1) + (lane & 1 ? 200 : 100)));
}

TEST_CASE("groups of lanes in different branches work independently") {
  const auto result = runWarp(R"(
    setp.lt.u32 %p1, %r0, 12; @%p1 bra LOW;
    redux.sync.add.u32 %r3, %r0, 0xfffff000; bra DONE;
  LOW:
    redux.sync.add.u32 %r3, %r0, 0xfff;
  DONE:
    st.global.u32 [%rd1], %r3; ret;
  )");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(result[lane] == (lane < 12 ? 66u : 496u - 66u));
}

TEST_CASE("bar.warp.sync orders the lanes' accesses to shared memory") {
  const auto result = runWarp(R"(
    .shared .align 4 .b8 s[128]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; xor.b32 %r4, %r2, 124; add.u32 %r4, %r1, %r4;
    setp.lt.u32 %p1, %r0, 16; @%p1 bra A;
    st.shared.u32 [%r3], %r0; bar.warp.sync -1; ld.shared.u32 %r5, [%r4]; bra DONE;
  A: add.u32 %r6, %r0, 1000; st.shared.u32 [%r3], %r6; bar.warp.sync -1; ld.shared.u32 %r5, [%r4];
  DONE: st.global.u32 [%rd1], %r5; ret;
  )");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(result[lane] == (lane < 16 ? 31 - lane : 1031 - lane));
}

TEST_CASE("special registers give a thread's position") {
  Device device(kernelText(".param .u64 out", R"(
    .reg .b32 %r<32>; .reg .b64 %d<8>; .reg .pred %p;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z;
    mov.u32 %r6, %laneid; mov.u32 %r7, %warpid; mov.u32 %r8, %lanemask_lt; mov.u32 %r9, %lanemask_ge; mov.u32 %r10, %nctaid.y;
    mad.lo.u32 %r11, %r2, 5, %r1; mad.lo.u32 %r11, %r11, 7, %r0; mad.lo.u32 %r12, %r5, 3, %r4; mad.lo.u32 %r12, %r12, 2, %r3; mad.lo.u32 %r13, %r12, 105, %r11;
    mul.wide.u32 %d1, %r13, 16; add.s64 %d2, %d0, %d1; xor.b32 %r8, %r8, %r9; add.u32 %r8, %r8, %r10; mad.lo.u32 %r7, %r7, 32, %r6;
    mov.u64 %d3, %clock64; mov.u64 %d4, %clock64; setp.ge.u64 %p, %d4, %d3; selp.u32 %r14, 1, 0, %p; mov.u32 %r15, %nsmid; mad.lo.u32 %r14, %r15, 10, %r14;
    st.global.v4.u32 [%d2], {%r11, %r7, %r8, %r14}; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint32_t>(105 * 12 * 4));
  device.launch.smCount = 7;
  device("k", {{2, 3, 2}, {7, 5, 3}}, out);
  const auto result = device.download<uint32_t>(out, 105 * 12 * 4);
  for (uint32_t b = 0; b < 12; ++b)
    for (uint32_t t = 0; t < 105; ++t) {
      const uint32_t* r = &result[(b * 105 + t) * 4];
      CHECK(r[0] == t);
      CHECK(r[1] == t);
      CHECK(r[2] == 2);  // all bits, and 3
      CHECK(r[3] == 71);
    }
}

}  // namespace vgpu::emulator
