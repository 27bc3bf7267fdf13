// What is slow by nature does not hold up the ring of its GPU.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <unistd.h>

#include <atomic>

#include "session-fixture.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

// A driver that loads a module when it is let go on. In the worker's process.
std::atomic<int> begun{0};
std::atomic<bool> mayLoad{false};
decltype(stub::Driver::cuModuleLoadDataEx) loadAtOnce;

CUresult loadWhenLet(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  ++begun;
  while (!mayLoad) usleep(50);
  return loadAtOnce(module, image, count, options, values);
}

void adapt(stub::Driver& driver) { loadAtOnce = std::exchange(driver.cuModuleLoadDataEx, loadWhenLet); }

// Begins to load `made::module`, and returns while the driver is at it.
void beginToLoad(TestSession& session) {
  bringImage(session, 1, madeImage());
  session.post(moduleLoad(0, made::module, 1));
  while (begun == 0) usleep(50);
}

// It is loaded if it has its function. A second load of the same image is answered behind the first.
void requireLoaded(TestSession& session) {
  bringImage(session, 2, madeImage());
  session.require(moduleLoad(0, made::module + 1, 2));
  session.require(moduleFunction(0, made::addFunction, made::module, "add"));
}

}  // namespace

TEST_CASE("a ring goes on while a module is loaded") {
  TestSession session;
  auto problem = session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        beginToLoad(session);
        session.require(synchronize());
        bringImage(session, 9, madeImage());
        KJ_REQUIRE(begun == 1 && !mayLoad);
        mayLoad = true;
        requireLoaded(session);
      },
      "", adapt);
  CHECK(problem == "");
}

TEST_CASE("an image that is dropped while its module is loaded stays until that is done") {
  TestSession session;
  auto problem = session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        beginToLoad(session);
        session.post(makeFrame<api::Cuda::BlobDropParams>(0, api::Method::blobDrop, 0, [](auto p) { p.setBlob(1); }));
        session.require(synchronize());
        mayLoad = true;
        requireLoaded(session);
      },
      "", adapt);
  CHECK(problem == "");
}

TEST_CASE("a worker that is quiesced has loaded what it began to load") {
  TestSession session;
  auto problem = session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        beginToLoad(session);
        worker.quiesce([](const std::string&) { mayLoad = true; });
        worker.proceed();
        session.require(moduleFunction(0, made::addFunction, made::module, "add"));
      },
      "", adapt);
  CHECK(problem == "");
}

