// Snapshots of programs that continue: bytes changed since the copying rounds are kept in pinned memory, in free GPU memory, or written at
// once; the result is the same.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <utility>

#include "checkpoint/live-snapshot.h"
#include "pinned-room.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

const stub::Driver& driverOf(stub::Worker& worker) {
  const stub::Driver* driver = nullptr;
  worker.runQuiesced([&](stub::SessionState& on) { driver = &on.driver; });
  return *driver;
}

size_t freeBytes(stub::Worker& worker) {
  size_t free = 0, total = 0;
  worker.runQuiesced([&](stub::SessionState& on) {
    on.select(0);
    stub::require(on.driver, on.driver.cuMemGetInfo_v2(&free, &total), "asking for free memory");
  });
  return free;
}

// Takes a snapshot of a program that changes two chunks between the rounds and the hold, and another one after the hold.
void snapshotWhileItChanges(TestSession& session, stub::Worker& worker, uint64_t mostPinned, const PinnedRoom* room = nullptr) {
  buildAndStop(session, worker);
  auto& driver = driverOf(worker);
  const size_t before = freeBytes(worker);
  worker.proceed();
  session.require(synchronize());
  LiveSnapshot live(driver, worker, std::make_unique<SnapshotWriter>(session.scratch.path + "/snapshot"), mostPinned);
  live.runRounds(nullptr);
  session.post(add(made::counters, 100));  // in a chunk that a round has already copied
  session.post(add(made::large + 6 * MiB, 9));
  session.require(synchronize());
  worker.quiesce();
  session.post(add(made::counters, 1000));  // not consumed
  session.commit();
  live.capture(session.scratch.path + "/list", someIdentity(), nullptr, room);
  Report report = live.finish(nullptr);
  KJ_REQUIRE(report.rounds >= 1 && report.roundBytes >= 3 * MiB, report.rounds, report.roundBytes);
  KJ_REQUIRE(report.heldBytes > 0 && report.heldBytes <= 8 * MiB, report.heldBytes);
  KJ_REQUIRE(report.pendingCalls == 1, report.pendingCalls);
  KJ_REQUIRE(freeBytes(worker) == before, freeBytes(worker), before);
}

// After a resume from this snapshot the program has the memory of the hold.
std::string resumeLive(TestSession& session) {
  return session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, session.scratch.path + "/snapshot", nullptr));
    session.require(synchronize());
    uint32_t words[] = {session.readWord(made::counters), session.readWord(made::large + 6 * MiB),
                        session.readWord(made::large + 5 * MiB), session.readWord(made::large + 64)};
    bool isRight = words[0] == 1112 && words[1] == 0x5a5a5a5a + 9 && words[2] == 0x5a5a5a5a && words[3] == 0x33333333;
    KJ_REQUIRE(isRight, words[0], words[1], words[2], words[3]);
  });
}

// Counts copies within the device to addresses above every program's. State of the worker's process.
unsigned keptPieces = 0;
decltype(stub::Driver::cuMemcpyDtoDAsync_v2) copyWithin;

void countKept(stub::Driver& driver) {
  copyWithin = std::exchange(driver.cuMemcpyDtoDAsync_v2, [](CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    keptPieces += to >= windowArenaBase + windowArenaBytes ? 1 : 0;
    return copyWithin(to, from, bytes, stream);
  });
}

}  // namespace

TEST_CASE("a snapshot contains what the program has changed since its rounds") {
  TestSession session;
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              snapshotWhileItChanges(session, worker, HeldMemory::most);
              KJ_REQUIRE(keptPieces == 0, keptPieces);
            },
            "", countKept) == "");
  CHECK(resumeLive(session) == "");
}

TEST_CASE("bytes without room in pinned memory are kept in free GPU memory until they are written") {
  TestSession session;
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              snapshotWhileItChanges(session, worker, snapshot::chunkBytes);
              KJ_REQUIRE(keptPieces > 0);
            },
            "memory=2GiB", countKept) == "");
  CHECK(resumeLive(session) == "");
}

TEST_CASE("bytes without room on the GPU either are kept in the daemon's pinned memory") {
  TestSession session;
  Room room(32 * MiB);
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              PinnedRoom pinned = room.room();
              snapshotWhileItChanges(session, worker, snapshot::chunkBytes, &pinned);
              KJ_REQUIRE(keptPieces == 0, keptPieces);
            },
            "memory=64MiB", countKept) == "");
  CHECK(room.usedBytes() > 0);
  CHECK(room.chunks() == 0);
  CHECK(resumeLive(session) == "");
}

TEST_CASE("bytes without room anywhere are written at once") {
  TestSession session;
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              snapshotWhileItChanges(session, worker, snapshot::chunkBytes);
              KJ_REQUIRE(keptPieces == 0, keptPieces);
            },
            "memory=64MiB", countKept) == "");
  CHECK(resumeLive(session) == "");
}

TEST_CASE("a snapshot that is abandoned between its steps leaves the session unchanged") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    const stub::Driver* driver = nullptr;
    worker.runQuiesced([&](stub::SessionState& on) { driver = &on.driver; });
    worker.proceed();
    for (int step = 0; step < 2; ++step) {
      LiveSnapshot live(*driver, worker, std::make_unique<SnapshotWriter>(session.scratch.path + "/snapshot"));
      live.runRounds(nullptr);
      if (step == 0) continue;
      worker.quiesce();
      live.capture(session.scratch.path + "/list", someIdentity(), nullptr);
      worker.proceed();
    }
    requireFinished(session);
  }) == "");
  CHECK(namesIn(session.scratch.path).count("snapshot") == 0);
}
