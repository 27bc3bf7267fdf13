// Clusters of blocks: their special registers, their barrier, and addresses in other blocks' shared memory.
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

// %r0: thread, %r1: rank, %r2: address of `word` in the block with the next rank; %d1: the block's address in `out`.
constexpr const char* clusterProlog = R"(
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .shared .align 4 .b32 word;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; ld.param.u64 %d0, [out];
  mov.u32 %r3, %ctaid.x; mul.wide.u32 %d1, %r3, 4; add.s64 %d1, %d0, %d1;
  add.u32 %r4, %r1, 1; mov.u32 %r5, %cluster_nctarank; rem.u32 %r4, %r4, %r5;
  mov.u32 %r6, word; mapa.shared::cluster.u32 %r2, %r6, %r4;
  setp.eq.u32 %p0, %r0, 0;
)";

struct InClusters : Device {
  explicit InClusters(const std::string& body) : Device(kernelText(".param .u64 out", clusterProlog + body)) {
    launch.cluster = {2, 1, 1};
    launch.explicitCluster = true;
    launch.maxInstructions = 20'000'000;
    out = upload(std::vector<uint32_t>(4));
  }
  std::optional<Fault> tried() { return tryLaunch("k", {{4, 1, 1}, {64, 1, 1}}, out); }
  std::vector<uint32_t> result() {
    const auto fault = tried();
    if (fault) FAIL(fault->report);
    return download<uint32_t>(out, 4);
  }
  uint64_t out;
};

}  // namespace

TEST_CASE("a block reads what the other block of its cluster has written") {
  CHECK(InClusters(R"(
    add.u32 %r7, %r3, 10; @%p0 st.shared.u32 [word], %r7;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ld.shared::cluster.u32 %r8, [%r2]; @%p0 st.global.u32 [%d1], %r8;
    barrier.cluster.arrive; barrier.cluster.wait; ret;
  )").result() == std::vector<uint32_t>{11, 10, 13, 12});
}

TEST_CASE("the blocks of a cluster can use its barrier repeatedly") {
  InClusters device(R"(
    mov.u32 %r9, 0; @%p0 st.shared.u32 [word], %r9;
  ROUND:
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p0 atom.shared::cluster.add.u32 %r7, [%r2], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 20; @%p1 bra ROUND;
    ld.shared.u32 %r8, [word]; @%p0 st.global.u32 [%d1], %r8; ret;
  )");
  device.launch.cluster = {4, 1, 1};
  CHECK(device.result() == std::vector<uint32_t>(4, 20));
}

TEST_CASE("isspacep.shared is true only for addresses in the block's own shared memory") {
  CHECK(InClusters(R"(
    cvta.shared.u64 %d2, word; mapa.u64 %d3, %d2, %r4; mapa.u64 %d4, %d2, %r1; mov.u32 %r7, 0;
    isspacep.shared %p1, %d2; @%p1 or.b32 %r7, %r7, 1;
    isspacep.shared::cta %p1, %d3; @%p1 or.b32 %r7, %r7, 2;
    isspacep.shared::cluster %p1, %d3; @%p1 or.b32 %r7, %r7, 4;
    isspacep.shared %p1, %d4; @%p1 or.b32 %r7, %r7, 8;
    getctarank.u64 %r8, %d3; shl.b32 %r8, %r8, 4; or.b32 %r7, %r7, %r8;
    getctarank.shared::cluster.u32 %r8, %r6; shl.b32 %r8, %r8, 5; or.b32 %r7, %r7, %r8;
    @%p0 st.global.u32 [%d1], %r7; ret;
  )").result() == std::vector<uint32_t>{1 + 4 + 8 + 16, 1 + 4 + 8 + 32, 1 + 4 + 8 + 16, 1 + 4 + 8 + 32});
}

TEST_CASE("a thread that has arrived at the cluster's barrier continues until it waits there") {
  CHECK(InClusters(R"(
    @%p0 st.shared.u32 [word], %r1;
    barrier.cluster.arrive;
    setp.ne.u32 %p1, %r1, 0; @%p1 bra SECOND;
  SPIN:
    ld.volatile.shared.u32 %r7, [word]; setp.eq.u32 %p2, %r7, 0; @%p2 bra SPIN;
    barrier.cluster.wait; bra END;
  SECOND:
    barrier.cluster.wait;
    mov.u32 %r7, 5; @%p0 st.shared::cluster.u32 [%r2], %r7;
  END:
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p0 st.global.u32 [%d1], %r7; ret;
  )").result() == std::vector<uint32_t>{5, 5, 5, 5});
}

TEST_CASE("the cluster's barrier neither waits for threads that have ended nor counts their arrivals") {
  CHECK(InClusters(R"(
    setp.ge.u32 %p1, %r0, 40; @%p1 barrier.cluster.arrive; @%p1 ret;
    setp.eq.u32 %p2, %r1, 0; @%p2 bra FIRST;
    mov.u32 %r9, 0;
  DELAY:
    add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 5000; @%p3 bra DELAY;
  FIRST:
    @%p0 st.shared.u32 [word], %r9;
    barrier.cluster.arrive; barrier.cluster.wait;
    ld.shared::cluster.u32 %r8, [%r2]; @%p2 mov.u32 %r7, %r8; @!%p2 mov.u32 %r7, 1; @%p0 st.global.u32 [%d1], %r7;
    barrier.cluster.arrive; barrier.cluster.wait; ret;
  )").result() == std::vector<uint32_t>{5000, 1, 5000, 1});
}

TEST_CASE("a barrier of a cluster that some threads never reach is reported") {
  const auto fault = InClusters(R"(
    setp.eq.u32 %p1, %r1, 0; @%p1 bra WRONG;
    barrier.cluster.arrive; barrier.cluster.wait; ret;
  WRONG:
    @!%p0 bra OTHERS; bar.sync 1; bra.uni END;
  OTHERS:
    bar.sync 2;
  END:
    barrier.cluster.arrive; barrier.cluster.wait; ret;
  )").tried();
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::divergentBarrier);
}

TEST_CASE("a rank beyond the cluster's blocks has no memory") {
  const auto fault = InClusters("mov.u32 %r7, 2; mapa.shared::cluster.u32 %r2, %r6, %r7; st.shared::cluster.u32 [%r2], %r7; ret;").tried();
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::illegalAddress);
}

}  // namespace vgpu::emulator
