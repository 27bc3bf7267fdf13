// Checks of shared memory that a launch may request: uninitialized reads, and races.
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

constexpr uint32_t threadCount = 64;

// A kernel over `tile`, an array with one word per thread: %r0 is the thread, %r1 the address of its word, %r2 that of the next thread's
// word (in a ring).
std::string onTile(const std::string& body) {
  return kernelText("",
                    R"(.reg .pred %p<4>; .reg .b16 %h; .reg .b32 %r<9>; .reg .b64 %d<4>; .shared .align 8 .b8 tile[256];
    mov.u32 %r0, %tid.x; mov.u32 %r3, tile; mad.lo.u32 %r1, %r0, 4, %r3;
    add.u32 %r2, %r0, 1; and.b32 %r2, %r2, 63; mad.lo.u32 %r2, %r2, 4, %r3;
)" + body + "\nret;");
}

std::optional<Fault> outcome(const std::string& body, uint32_t checks) {
  Device device(onTile(body));
  device.launch.checks = checks;
  return device.tryLaunch("k", {{2, 1, 1}, {threadCount, 1, 1}});
}
// Whether the check finds the error; without the check the kernel must run to its end.
bool finds(uint32_t check, Fault::Kind kind, const std::string& body) {
  CAPTURE(body);
  CHECK_FALSE(outcome(body, 0));
  const auto fault = outcome(body, check);
  if (fault) CHECK_MESSAGE(fault->kind == kind, fault->report);
  return fault.has_value();
}
bool isRace(const std::string& body) { return finds(checkRaces, Fault::Kind::sharedRace, body); }
bool isUninitialized(const std::string& body) {
  return finds(checkUninitialized, Fault::Kind::uninitializedShared, body);
}

const std::string store = "st.shared.u32 [%r1], %r0;\n", loadNext = "ld.shared.u32 %r4, [%r2];\n",
                  barrierKind = "bar.sync 0;\n", init = "st.shared.u32 [%r1], 0;\nbar.sync 0;\n";

}  // namespace

TEST_CASE("reads of uninitialized shared memory are found") {
  CHECK(isUninitialized("ld.shared.u32 %r4, [%r1];"));
  CHECK_FALSE(isUninitialized(store + barrierKind + loadNext));
  // Checked per byte, not per word; for all elements of a vector; and through generic addresses.
  CHECK(isUninitialized("cvt.u16.u32 %h, %r0; st.shared.u8 [%r1], %h; ld.shared.u32 %r4, [%r1];"));
  CHECK_FALSE(isUninitialized("cvt.u16.u32 %h, %r0; st.shared.u8 [%r1], %h; ld.shared.u8 %h, [%r1];"));
  CHECK(isUninitialized("st.shared.u32 [tile], 1; bar.sync 0; ld.shared.v2.u32 {%r4, %r5}, [tile];"));
  CHECK(isUninitialized("cvt.u64.u32 %d0, %r1; cvta.shared.u64 %d1, %d0; ld.u32 %r4, [%d1];"));
  CHECK(isUninitialized("atom.shared.add.u32 %r4, [%r1], 1;"));
  CHECK_FALSE(isUninitialized(init + "atom.shared.add.u32 %r4, [%r2], 1;"));
}

TEST_CASE("a report of an uninitialized read names kernel, thread, line and offset") {
  const auto fault = outcome("setp.ne.u32 %p0, %r0, 37;\n@%p0 st.shared.u32 [%r1], %r0;\nbar.sync 0;\n\n" + loadNext,
                             checkUninitialized);
  REQUIRE(fault);
  CAPTURE(fault->report);
  CHECK(fault->report.find("kernel k, block (0, 0, 0), thread (36, 0, 0)") != std::string::npos);
  CHECK(fault->report.find("4 bytes at offset 148 of shared memory") != std::string::npos);
  CHECK(fault->report.find("PTX line 14") != std::string::npos);
}

TEST_CASE("accesses of two threads race if no barrier is between them") {
  CHECK(isRace(store + loadNext));
  CHECK_FALSE(isRace(store + barrierKind + loadNext));
  // Also a read before a write; and writes of different values.
  CHECK(isRace(init + loadNext + store));
  CHECK_FALSE(isRace(init + loadNext + barrierKind + store));
  CHECK(isRace("st.shared.u32 [tile], %r0;"));
  CHECK_FALSE(isRace("st.shared.u32 [tile], 7;"));
  // A thread's own accesses are ordered, and reads do not race with reads.
  CHECK_FALSE(isRace(store + "ld.shared.u32 %r4, [%r1]; st.shared.u32 [%r1], %r4;"));
  CHECK_FALSE(isRace(init + "ld.shared.u32 %r4, [tile];"));
  // Adjacent bytes are different locations.
  CHECK_FALSE(isRace("add.u32 %r4, %r3, %r0; cvt.u16.u32 %h, %r0; st.shared.u8 [%r4], %h;"));
}

TEST_CASE("all readers are remembered, not only the last one") {
  const std::string readByAll = init + "ld.shared.u32 %r4, [tile+128];\n";
  // Thread 32 reads like the others and then writes: any thread of its warp may be the last reader.
  CHECK(isRace(readByAll + "setp.eq.u32 %p0, %r0, 32; @%p0 st.shared.u32 [tile+128], 5;"));
  CHECK(isRace(readByAll + "setp.eq.u32 %p0, %r0, 63; @%p0 st.shared.u32 [tile+128], 5;"));
  CHECK_FALSE(isRace(readByAll + barrierKind + "setp.eq.u32 %p0, %r0, 63; @%p0 st.shared.u32 [tile+128], 5;"));
}

TEST_CASE("bar.warp.sync orders the threads of its own warp and no others") {
  const std::string nextInWarp =
      "add.u32 %r5, %r0, 1; and.b32 %r5, %r5, 31; and.b32 %r6, %r0, 32; or.b32 %r5, %r5, %r6; mad.lo.u32 %r5, %r5, 4, "
      "%r3;\n";
  CHECK_FALSE(isRace(nextInWarp + store + "bar.warp.sync -1; ld.shared.u32 %r4, [%r5];"));
  CHECK(isRace(nextInWarp + store + "ld.shared.u32 %r4, [%r5];"));
  CHECK(isRace(store + "bar.warp.sync -1;\n" + loadNext));
}

TEST_CASE("atomics do not race with each other, but they do with other accesses") {
  CHECK_FALSE(isRace(init + "atom.shared.add.u32 %r4, [tile], 1;"));
  CHECK(isRace(init + "atom.shared.add.u32 %r4, [tile], 1; ld.shared.u32 %r5, [tile];"));
  CHECK(isRace(init + "st.shared.u32 [%r1], %r0; atom.shared.add.u32 %r4, [%r2], 1;"));
}

TEST_CASE("intended communication between threads is not reported as a race") {
  CHECK_FALSE(isRace(init + "st.volatile.shared.u32 [tile], %r0; ld.volatile.shared.u32 %r4, [tile];"));
  // A flag between a producer and its consumers: release in one, acquire in the others.
  CHECK_FALSE(isRace(init + R"(setp.ne.u32 %p0, %r0, 0; @%p0 bra WAIT;
    st.shared.u32 [tile+8], 42; fence.acq_rel.cta; st.relaxed.cta.shared.u32 [tile+4], 1; bra DONE;
  WAIT: ld.acquire.cta.shared.u32 %r4, [tile+4]; setp.eq.u32 %p1, %r4, 0; @%p1 bra WAIT;
    ld.shared.u32 %r5, [tile+8];
  DONE:)"));
}

TEST_CASE("a report of a race names both threads") {
  const auto fault = outcome(store + loadNext, checkRaces);
  REQUIRE(fault);
  CAPTURE(fault->report);
  CHECK(fault->report.find("thread (0, 0, 0): a race on shared memory: 4 bytes at offset 4") != std::string::npos);
  CHECK(fault->report.find("without synchronization in between: thread (1, 0, 0)") != std::string::npos);
}

TEST_CASE("matrix loads and asynchronous copies are checked as loads and stores are") {
  CHECK(
      isUninitialized("and.b32 %r5, %r0, 7; mad.lo.u32 %r5, %r5, 16, %r3;\n"
                      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r5];"));
  CHECK_FALSE(isUninitialized(init + "and.b32 %r5, %r0, 7; mad.lo.u32 %r5, %r5, 16, %r3;\n"
                                     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r5];"));
}

}  // namespace vgpu::emulator
