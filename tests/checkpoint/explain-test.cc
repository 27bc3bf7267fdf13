// explain() names whatever would delay a suspend.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <unistd.h>

#include <atomic>

#include "checkpoint/explain.h"
#include "session-fixture.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

// A driver that blocks in a call until the test lets it return. State of the worker's process.
std::atomic<bool> holds{false}, isHeld{false}, mayReturn{false};
decltype(stub::Driver::cuModuleLoadDataEx) loadWithoutHold;
decltype(stub::Driver::cuStreamCreateWithPriority) createWithoutHold;

void hold() {
  if (!holds) return;  // a load of the worker itself
  isHeld = true;
  while (!mayReturn) usleep(50);
}

void holdLoading(stub::Driver& driver) {
  loadWithoutHold = std::exchange(driver.cuModuleLoadDataEx,
                                  [](CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
                                    hold();
                                    return loadWithoutHold(module, image, count, options, values);
                                  });
}

void holdStreams(stub::Driver& driver) {
  createWithoutHold = std::exchange(driver.cuStreamCreateWithPriority, [](CUstream* stream, unsigned flags, int priority) {
    hold();
    return createWithoutHold(stream, flags, priority);
  });
}

// Requires the given text from explain() while the call is blocked.
void requireDelay(TestSession& session, stub::Worker& worker, const std::function<void()>& begin, const std::string& object) {
  KJ_DEFER(mayReturn = true);  // the worker's end waits for the driver, also if this function throws
  worker.proceed();
  session.require(synchronize());
  holds = true;
  begin();
  while (!isHeld) usleep(50);
  auto found = checkpoint::explain(worker);
  KJ_REQUIRE(found.obstacles.size() == 1, found.obstacles.size());
  KJ_REQUIRE(!found.obstacles[0].refuses && found.obstacles[0].object == object, found.obstacles[0].object.c_str());
  mayReturn = true;
  session.require(synchronize());
}

}  // namespace

TEST_CASE("a module that is being loaded is reported as a delay, by the name of its call") {
  TestSession session;
  auto begin = [&] {
    bringImage(session, 1, madeImage());
    session.begin(moduleLoad(0, made::module, 1));
  };
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              requireDelay(session, worker, begin, "call moduleLoad");
              KJ_REQUIRE(session.finish() == CUDA_SUCCESS);
            },
            "", holdLoading) == "");
}

TEST_CASE("a call that the driver does not return from is reported as a delay, by its name") {
  TestSession session;
  auto begin = [&] {
    session.post(
        makeFrame<api::Cuda::StreamCreateParams>(0, api::Method::streamCreate, 0, [](auto p) { p.setPhStream(made::stream); }));
  };
  CHECK(session.inWorker([&](stub::Worker& worker) { requireDelay(session, worker, begin, "call cuStreamCreateWithPriority"); },
                         "", holdStreams) == "");
}
