// Snapshots whose chunks are in pinned memory.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "checkpoint/write-out.h"
#include "pinned-room.h"
#include "session-fixture.h"
#include "vgpu/store/chunk-store.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

// Creates a store beside the session's list and returns the path of a snapshot's directory in it.
std::string storedSnapshot(const TestSession& session) {
  std::string folder = session.scratch.path + "/store";
  ChunkStore store(folder);
  return ChunkStore::directoryOf(folder, "one");
}

Report saveQuiesced(TestSession& session, stub::Worker& worker, const std::string& path, Room& room) {
  SnapshotWriter writer(path);
  PinnedRoom pinned = room.room();
  return save(worker, writer, session.scratch.path + "/list", someIdentity(), nullptr, &pinned);
}

void saveTo(TestSession& session, stub::Worker& worker, const std::string& path, Room& room) {
  buildAndStop(session, worker);
  saveQuiesced(session, worker, path, room);
}

std::string resume(TestSession& session, const std::string& path, Room& room) {
  return session.inWorker([&](stub::Worker& worker) {
    PinnedRoom pinned = room.room();
    Restored rebuilt = restore(worker, path, nullptr, {.room = &pinned});
    proceed(worker, rebuilt);
    requireFinished(session);
  });
}

}  // namespace

TEST_CASE("a session whose chunks went to pinned memory is resumed from there") {
  TestSession session;
  Room room(32 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) { saveTo(session, worker, path, room); }) == "");
  CHECK(room.chunks() >= 3);
  CHECK(readHeader(SnapshotReader(path)).pool == "pool-of-the-test");
  CHECK(namesIn(session.scratch.path + "/store/packs").empty());
  CHECK(resume(session, path, room) == "");
}

TEST_CASE("chunks for which there is no room in pinned memory go to the store, and both come back") {
  TestSession session;
  Room room(3 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) { saveTo(session, worker, path, room); }) == "");
  CHECK(room.chunks() >= 1);
  CHECK(!namesIn(session.scratch.path + "/store/packs").empty());
  CHECK(resume(session, path, room) == "");
}

TEST_CASE("a second suspend to pinned memory copies what has changed since, and counts it") {
  TestSession session;
  Room room(32 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    uint64_t copied = saveQuiesced(session, worker, path, room).copiedBytes;
    KJ_REQUIRE(copied >= 4 * MiB, copied);
  }) == "");
  CHECK(session.inWorker([&](stub::Worker& worker) {
    PinnedRoom pinned = room.room();
    proceed(worker, restore(worker, path, nullptr, {.room = &pinned}));
    session.post(add(made::large + 6 * MiB, 9));
    session.require(synchronize());
    worker.quiesce();
    session.commit();
    Report report = saveQuiesced(session, worker, session.scratch.path + "/store/snapshots/two", room);
    // Four chunks are not all zeros by now; one whole chunk is unchanged.
    KJ_REQUIRE(report.copiedBytes > 0 && report.copiedBytes <= 6 * MiB, report.copiedBytes);
  }) == "");
}

TEST_CASE("a suspended session is resumed in the worker that still has it, unless the program is at another position") {
  TestSession session;
  Room room(32 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) {
    saveTo(session, worker, path, room);
    proceed(worker, reclaim(worker, path));
    requireFinished(session);
    worker.quiesce();
    auto elsewhere = kj::runCatchingExceptions([&] { reclaim(worker, path); });
    KJ_REQUIRE(elsewhere != nullptr);
  }) == "");
}

TEST_CASE("each altered chunk in pinned memory is found, and the program's memory is unchanged") {
  TestSession session;
  Room room(32 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) { saveTo(session, worker, path, room); }) == "");
  auto before = session.program();
  for (size_t chunk = 0; chunk < room.chunks(); ++chunk) {
    std::byte& altered = room.memory()[room.offsetOf(chunk)];
    altered ^= std::byte{1};
    CHECK(resume(session, path, room).find("pinned memory: its digest does not match") != std::string::npos);
    altered ^= std::byte{1};
  }
  CHECK(session.program() == before);
  CHECK(resume(session, path, room) == "");
}

TEST_CASE("a snapshot whose pinned memory is gone is refused by its chunk") {
  TestSession session;
  Room room(32 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) { saveTo(session, worker, path, room); }) == "");
  room.forget();
  CHECK(resume(session, path, room).find("lacks a chunk") != std::string::npos);
}

TEST_CASE("a snapshot that was written from pinned memory to disk needs none, and an altered chunk is not written") {
  TestSession session;
  Room room(32 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) { saveTo(session, worker, path, room); }) == "");
  PinnedRoom pinned = room.room();
  room.memory()[room.offsetOf(room.chunks() - 1)] ^= std::byte{1};
  CHECK_THROWS_WITH_AS(writeOut(path, pinned), doctest::Contains("its digest does not match"), kj::Exception);
  CHECK(readHeader(SnapshotReader(path)).pool == "pool-of-the-test");
  room.memory()[room.offsetOf(room.chunks() - 1)] ^= std::byte{1};
  CHECK(writeOut(path, pinned).storedBytes > 0);
  CHECK(readHeader(SnapshotReader(path)).pool == "");
  room.forget();
  CHECK(resume(session, path, room) == "");
}
