// Snapshots whose chunks are in pinned memory, and those of a program that goes on.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "checkpoint/live-snapshot.h"
#include "checkpoint/pinned-memory.h"
#include "checkpoint/write-out.h"
#include "session-fixture.h"
#include "vgpu/store/chunk-store.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

// A daemon's part, in memory that all workers of a test share: room is given from its beginning on, and never comes back.
class Room {
 public:
  explicit Room(uint64_t bytes)
      : file(MemoryFile::create("vgpu-test-pinned", tableBytes + bytes)),
        mapping(file),
        table(new (mapping.data()) Table),
        bytes(bytes) {}

  PinnedRoom room() {
    return {memory(), "pool-of-the-test",
            [this](const DigestKey&, std::span<const ChunkName> names, bool makesRoom) { return place(names, makesRoom); },
            [this](const DigestKey&, std::span<const ChunkName> names, std::span<const uint64_t> offsets) {
              for (size_t i = 0; i < names.size(); ++i) table->entries.at(table->count++) = {names[i], offsets[i]};
            }};
  }
  std::span<std::byte> memory() { return {mapping.data() + tableBytes, bytes}; }
  size_t chunks() const { return table->count; }
  uint64_t offsetOf(size_t chunk) const { return table->entries.at(chunk).offset; }
  void forget() { table->count = 0; }

 private:
  struct Entry {
    ChunkName name;
    uint64_t offset = 0;
  };
  struct Table {
    std::array<Entry, 256> entries;
    size_t count = 0;
    uint64_t used = 0;
  };
  static constexpr uint64_t tableBytes = 64 * KiB;
  static_assert(sizeof(Table) <= tableBytes);

  std::vector<PinnedPlace> place(std::span<const ChunkName> names, bool makesRoom) {
    std::vector<PinnedPlace> places(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      for (size_t known = 0; known < table->count; ++known)
        if (table->entries[known].name == names[i]) places[i] = {table->entries[known].offset, PinnedPlace::State::there};
      if (places[i].state == PinnedPlace::State::there || !makesRoom || names[i].bytes > bytes - table->used) continue;
      places[i] = {table->used, PinnedPlace::State::room};
      table->used += names[i].bytes;
    }
    return places;
  }

  MemoryFile file;
  Mapping mapping;
  Table* table;
  uint64_t bytes;
};

// A store beside the session's list, and a snapshot's directory in it.
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

TEST_CASE("a session whose chunks went to pinned memory goes on from there") {
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
    // Of four chunks that have something else than zeros by now, one whole one is as it was.
    KJ_REQUIRE(report.copiedBytes > 0 && report.copiedBytes <= 6 * MiB, report.copiedBytes);
  }) == "");
}

TEST_CASE("a suspended session goes on in the worker that still has it, unless the program is at another place") {
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

TEST_CASE("each chunk in pinned memory that was altered is found, and the program stays as it was") {
  TestSession session;
  Room room(32 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) { saveTo(session, worker, path, room); }) == "");
  auto before = session.program();
  for (size_t chunk = 0; chunk < room.chunks(); ++chunk) {
    std::byte& altered = room.memory()[room.offsetOf(chunk)];
    altered ^= std::byte{1};
    CHECK(resume(session, path, room).find("pinned memory: its digest differs") != std::string::npos);
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

TEST_CASE("a snapshot that was written out of pinned memory needs none, and an altered chunk is not written") {
  TestSession session;
  Room room(32 * MiB);
  std::string path = storedSnapshot(session);
  CHECK(session.inWorker([&](stub::Worker& worker) { saveTo(session, worker, path, room); }) == "");
  PinnedRoom pinned = room.room();
  room.memory()[room.offsetOf(room.chunks() - 1)] ^= std::byte{1};
  CHECK_THROWS_WITH_AS(writeOut(path, pinned, nullptr), doctest::Contains("its digest differs"), kj::Exception);
  CHECK(readHeader(SnapshotReader(path)).pool == "pool-of-the-test");
  room.memory()[room.offsetOf(room.chunks() - 1)] ^= std::byte{1};
  CHECK(writeOut(path, pinned, nullptr).storedBytes > 0);
  CHECK(readHeader(SnapshotReader(path)).pool == "");
  room.forget();
  CHECK(resume(session, path, room) == "");
}

TEST_CASE("what a program has changed since the rounds of its snapshot is in it") {
  TestSession session;
  std::string list = session.scratch.path + "/list", path = session.scratch.path + "/snapshot";
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    const stub::Driver* driver = nullptr;
    worker.runQuiesced([&](stub::SessionState& on) { driver = &on.driver; });
    worker.proceed();
    session.require(synchronize());
    LiveSnapshot live(*driver, worker, std::make_unique<SnapshotWriter>(path));
    live.runRounds(nullptr);
    session.post(add(made::counters, 100));  // in a chunk that is copied already
    session.post(add(made::large + 6 * MiB, 9));
    session.require(synchronize());
    worker.quiesce();
    session.post(add(made::counters, 1000));  // not consumed
    session.commit();
    live.capture(list, someIdentity(), nullptr);
    Report report = live.finish(nullptr);
    KJ_REQUIRE(report.rounds >= 1 && report.roundBytes >= 3 * MiB, report.rounds, report.roundBytes);
    KJ_REQUIRE(report.heldBytes > 0 && report.heldBytes <= 8 * MiB, report.heldBytes);
    KJ_REQUIRE(report.pendingCalls == 1, report.pendingCalls);
  }) == "");
  CHECK(session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, path, nullptr));
    session.require(synchronize());
    uint32_t words[] = {session.readWord(made::counters), session.readWord(made::large + 6 * MiB),
                        session.readWord(made::large + 5 * MiB), session.readWord(made::large + 64)};
    bool isRight = words[0] == 1112 && words[1] == 0x5a5a5a5a + 9 && words[2] == 0x5a5a5a5a && words[3] == 0x33333333;
    KJ_REQUIRE(isRight, words[0], words[1], words[2], words[3]);
  }) == "");
}

TEST_CASE("a snapshot that is given up between its steps leaves the session as it is") {
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
