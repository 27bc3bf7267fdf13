// A session that is saved by one worker and resumed in another.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>

#include "vgpu/snapshot/manifest.h"
#include "session-fixture.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

// Passes a report from a worker's process to the test's.
struct Shared {
  Report report;  // without its phases, which lie in the worker's memory
  int phases = 0;
  uint64_t objectsDone = 0, objectsTotal = 0;
};

Shared& sharedMemory() {
  static MemoryFile file = MemoryFile::create("vgpu-test-shared", 4096);
  static Mapping mapping(file);
  static Shared* shared = new (mapping.data()) Shared;
  *shared = Shared();
  return *shared;
}

}  // namespace

TEST_CASE(
    "a saved session is resumed in another worker: memory, module, variable, events, and the pending "
    "calls") {
  TestSession session;
  std::string list = session.scratch.path + "/list", path = session.scratch.path + "/snapshot";
  auto& saved = sharedMemory();
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    saved.report = save(worker, path, list, someIdentity(), [&](const char*, uint64_t done, uint64_t total) {
      KJ_REQUIRE(done <= total);
      saved.phases++;
    });
    KJ_REQUIRE(saved.report.phases.size() >= 5, "the report does not say what its time went to");
    saved.report.phases = PhaseTimes();
  }) == "");
  std::set<std::string> names{"manifest.json", "objects", "chunks", "pending-calls", "output"};
  for (unsigned pack = 0; pack < packsHere(); ++pack) names.insert(packFile(pack));
  CHECK(namesIn(path) == names);
  CHECK(saved.report.pendingCalls == 4);
  CHECK(saved.report.objects == 10);
  CHECK(saved.report.deviceBytes >= made::largeBytes + 256 + 256 + 4);
  CHECK(saved.report.storedBytes < 100'000);  // mostly zeros and one value
  CHECK(saved.phases >= 2);

  CHECK(readHeader(SnapshotReader(path)).identity.session == "5e55");
  CHECK(readHeader(SnapshotReader(path)).identity.pid == 4242);
  size_t alive = 0;
  checkpoint::readObjects(path, [&](ObjectRecord&& record) {
    CHECK_FALSE(record.destroyed());
    alive++;
  });
  CHECK(alive == 10);

  auto before = session.program();
  auto& restored = sharedMemory();
  CHECK(session.inWorker([&](stub::Worker& worker) {
    Restored rebuilt = restore(worker, path, nullptr);
    restored.report = rebuilt.report;
    restored.report.phases = PhaseTimes();
    KJ_REQUIRE(session.program() == before, "the waiting program's calls were changed");
    proceed(worker, rebuilt);
    requireFinished(session);
  }) == "");
  CHECK(restored.report.pendingCalls == 4);
  CHECK(restored.report.objects == 10);
}

TEST_CASE("a session can be saved again after it was restored, and again") {
  TestSession session;
  std::string list = session.scratch.path + "/list", path = session.scratch.path + "/snapshot";
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    save(worker, path + "0", list, someIdentity(), nullptr);
  }) == "");
  for (int round = 0; round < 3; round++) {
    CHECK(session.inWorker([&](stub::Worker& worker) {
      proceed(worker, restore(worker, path + std::to_string(round), nullptr));
      session.require(synchronize());
      session.post(add(made::counters, 1));
      worker.quiesce();
      session.post(add(made::counters, 1));
      session.commit();
      save(worker, path + std::to_string(round + 1), list, someIdentity(), nullptr);
    }) == "");
  }
  CHECK(session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, path + "3", nullptr));
    session.require(synchronize());
    uint32_t counter = session.readWord(made::counters);
    KJ_REQUIRE(counter == 12 + 6, counter);
  }) == "");
}

TEST_CASE("calls that wait for those of another ring are pending at a barrier, and wait for them in the next worker") {
  const uint64_t memory = deviceArena(1);
  const std::byte stamp{0x2a};
  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
  uint64_t pendingCalls = 0;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    session.require(makeFrame<api::Cuda::LeaseParams>(0, api::Method::lease, 1, [&](auto& p) {
      p.setAddress(memory);
      p.setBytes(leaseGranularity);
    }));
    // Waits for a frame that the first ring does not have yet.
    uint64_t awaited = session.segment().ring(0).head.load() + 1;
    session.post(makeFrame<api::Cuda::AwaitRingParams>(0, api::Method::awaitRing, 1, [&](auto& p) {
      p.setDevice(0);
      p.setPosition(awaited);
    }));
    session.post(makeFrame<api::Cuda::FillParams>(0, api::Method::fill, 1, [&](auto& p) {
      p.setDestination(memory);
      p.setElementBytes(1);
      p.setValue(std::to_integer<uint32_t>(stamp));
      p.setWidth(4);
      p.setHeight(1);
    }));
    session.commit();
    worker.quiesce();
    pendingCalls = save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr).pendingCalls;
    KJ_REQUIRE(pendingCalls == 2, pendingCalls);
  }, "devices=2") == "");
  CHECK(session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, path, nullptr));
    session.require(synchronize());  // in the first ring
    auto fetch = copy3dBack(api::Place::slab(60), api::Place::address(memory), 4);
    fetch.device = 1;
    session.require(std::move(fetch));
    KJ_REQUIRE(session.segment().slab(60)[3] == stamp);
  }, "devices=2") == "");
}

TEST_CASE("a worker that has saved its session can go on with it") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    save(worker, session.scratch.path + "/snapshot", session.scratch.path + "/list", someIdentity(), nullptr);
    worker.proceed();
    requireFinished(session);
  }) == "");
}

TEST_CASE("a session that made no call is saved and restored") {
  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
  session.commit();
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    worker.quiesce();
    save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
  }) == "");
  CHECK(session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, path, nullptr));
    session.require(synchronize());
  }) == "");
}

TEST_CASE("a snapshot is also restored in memory that was never used, with the pending calls") {
  TestSession session, other;
  std::string path = session.scratch.path + "/snapshot";
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
  }) == "");
  std::memcpy(other.segment().slab(61), session.segment().slab(61), 8);  // the address that the program itself remembers
  CHECK(other.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, path, nullptr));
    requireFinished(other);
  }) == "");
}

TEST_CASE("the bytes reported while objects are rebuilt are the bytes of their frames") {
  TestSession session;
  std::string list = session.scratch.path + "/list", path = session.scratch.path + "/snapshot";
  auto& told = sharedMemory();
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    save(worker, path, list, someIdentity(), nullptr);
  }) == "");
  uint64_t bytes = 0;
  checkpoint::readObjects(path, [&](ObjectRecord&& record) {
    for (auto& frame : record.recipe) bytes += frame.words.asBytes().size();
  });
  CHECK(session.inWorker([&](stub::Worker& worker) {
    Restored rebuilt = restore(worker, path, [&](const char* phase, uint64_t done, uint64_t total) {
      if (std::string(phase) == "objects") told.objectsDone = done, told.objectsTotal = total;
    });
    proceed(worker, rebuilt);
    requireFinished(session);
  }) == "");
  CHECK(told.objectsDone == bytes);
  CHECK(told.objectsTotal == bytes);
}

TEST_CASE("invalid placements of managed memory are refused, and the memory stays where it is") {
  const uint64_t memory = deviceArena(0) + managedPart;
  TestSession session;
  auto placed = [&](uint64_t address, std::vector<uint32_t> granules, std::vector<uint32_t> devices) {
    return session.call(makeFrame<api::Cuda::LeasePlaceParams>(0, api::Method::leasePlace, 0, [&](auto& p) {
      p.setAddress(address);
      p.setGranules(kj::arrayPtr(granules.data(), granules.size()));
      p.setDevices(kj::arrayPtr(devices.data(), devices.size()));
    }));
  };
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    auto lease = makeFrame<api::Cuda::LeaseParams>(0, api::Method::lease, 0, [&](auto& p) {
      p.setAddress(memory);
      p.setBytes(4 * leaseGranularity);
    });
    session.require(std::move(lease));
    KJ_REQUIRE(placed(memory, {4}, {2}) == CUDA_ERROR_INVALID_VALUE);
    KJ_REQUIRE(placed(memory, {2, 2}, {1}) == CUDA_ERROR_INVALID_VALUE);
    KJ_REQUIRE(placed(memory, {2, 3}, {1, 0}) == CUDA_ERROR_INVALID_VALUE);
    KJ_REQUIRE(placed(memory, {4, UINT32_MAX}, {1, 0}) == CUDA_ERROR_INVALID_VALUE);
    KJ_REQUIRE(placed(memory, {}, {}) == CUDA_ERROR_INVALID_VALUE);
    KJ_REQUIRE(placed(memory + leaseGranularity, {3}, {1}) != CUDA_SUCCESS);
    KJ_REQUIRE(placed(memory, {1, 2, 1}, {1, 0, 1}) == CUDA_SUCCESS);
    KJ_REQUIRE(placed(memory, {4}, {0}) == CUDA_SUCCESS);
    session.require(synchronize());
    session.commit();
  }, "devices=2") == "");
}
