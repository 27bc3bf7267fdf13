// A session that is restored beside another session of the same snapshot, whose worker exports its device memory.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checkpoint/twin-memory.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"
#include "tools/worker/shown-memory.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

// Size of the whole chunks of `made` that are not zeros: two chunks.
constexpr uint64_t chunksBytes = 2 * snapshot::chunkBytes;

struct Outcome {
  std::string error;
  uint64_t twinBytes = 0;
};

using Change = std::function<void(const stub::Driver&, std::vector<TwinMemory>&)>;

// Saves a session, restores it from the memory that its worker exports after `change`, and resumes it.
Outcome restoreBeside(const Change& change) {
  static MemoryFile file = MemoryFile::create("vgpu-test-twin", 4096);
  static Mapping mapping(file);
  auto* twinBytes = new (mapping.data()) uint64_t(0);
  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  kj::AutoCloseFd input(ends[0]), output(ends[1]);
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
    worker.runQuiesced([&](stub::SessionState& on) {
      auto shown = showMemory(on);
      change(on.driver, shown);
      stub::sendShown(kj::mv(output), shown);
    });
  }) == "");
  output = nullptr;
  std::string error = session.inWorker([&](stub::Worker& worker) {
    auto shown = stub::receiveShown(kj::mv(input));
    Restored restored = restore(worker, path, nullptr, {.twin = &shown});
    *twinBytes = restored.report.twinBytes;
    proceed(worker, restored);
    requireFinished(session);
  });
  return {error, *twinBytes};
}

}  // namespace

TEST_CASE("a restored session copies unchanged chunks from the GPU memory of another session of its snapshot") {
  auto outcome = restoreBeside([](auto&, auto&) {});
  CHECK(outcome.error == "");
  CHECK(outcome.twinBytes == chunksBytes);
}

TEST_CASE("chunks that the other session has changed come from files") {
  auto outcome = restoreBeside([](const stub::Driver& driver, auto&) {
    stub::require(driver, driver.cuMemsetD8_v2(made::large + 7 * MiB, 1, 1), "changing a byte");
    stub::require(driver, driver.cuCtxSynchronize_v2(nullptr), "changing a byte");
  });
  CHECK(outcome.error == "");
  CHECK(outcome.twinBytes == chunksBytes / 2);
}

TEST_CASE("a session that is being suspended exports its memory and stays unchanged") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    auto executed = [&] {
      uint64_t position = 0;
      worker.runQuiesced([&](stub::SessionState& on) { position = on.of(0).gpu.executed; });
      return position;
    };
    const uint64_t before = executed();
    KJ_REQUIRE(
        worker.interlude(false, std::chrono::seconds(1), [](stub::SessionState& on) { KJ_REQUIRE(!showMemory(on).empty()); }));
    usleep(50000);  // pending calls in the ring would be executed in this time
    KJ_REQUIRE(executed() == before);
  }) == "");
}

TEST_CASE("exported memory that differs from its digests is not used, and does no harm") {
  const std::vector<Change> wrong{
      [](auto&, auto& shown) { shown.clear(); },
      [](auto&, auto& shown) {
        for (auto& each : shown) each.gpu = 77;
      },
      [](auto&, auto& shown) {
        for (auto& each : shown) each.shown.bytes *= 2;
      },
      [](auto&, auto& shown) {
        for (auto& each : shown) each.shown.bytes = UINT64_MAX - 4095;
      },
      [](auto&, auto& shown) {
        for (auto& each : shown) each.shown.address += leaseGranularity;
      },
      [](auto&, auto& shown) {
        for (auto& each : shown) each.shown.address = UINT64_MAX - 1;
      },
      [](auto&, auto& shown) {
        for (auto& each : shown) each.shown.descriptor = kj::AutoCloseFd(dup(STDIN_FILENO));
      },
  };
  for (auto& change : wrong) {
    auto outcome = restoreBeside(change);
    CHECK(outcome.error == "");
    CHECK(outcome.twinBytes == 0);
  }
}
