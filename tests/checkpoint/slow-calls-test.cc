// Slow calls do not block the ring of their GPU, and a GPU that is not used costs nothing.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <unistd.h>

#include <atomic>

#include "session-fixture.h"
#include "vgpu/api/handle.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

// A driver that blocks in a module load until the test lets it continue. State of the worker's process.
std::atomic<int> begun{0};
std::atomic<bool> mayLoad{false};
decltype(stub::Driver::cuModuleLoadDataEx) loadAtOnce;

CUresult loadWhenLet(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  ++begun;
  while (!mayLoad) usleep(50);
  return loadAtOnce(module, image, count, options, values);
}

// Waits until the driver executes the call that the session has begun.
void awaitDriver(TestSession& session) {
  for (; begun == 0; usleep(50)) KJ_REQUIRE(!session.isAnswered(), "the worker has answered without its driver");
}

void adapt(stub::Driver& driver) { loadAtOnce = std::exchange(driver.cuModuleLoadDataEx, loadWhenLet); }

// Begins to load `made::module`, and returns while the driver is loading.
void beginToLoad(TestSession& session) {
  bringImage(session, 1, madeImage());
  session.begin(moduleLoad(0, made::module, 1));
  awaitDriver(session);
}

decltype(stub::Driver::cuMemHostRegister_v2) registerAtOnce;

CUresult registerWhenLet(void* memory, size_t bytes, unsigned flags) {
  if (bytes != 3 * MiB) return registerAtOnce(memory, bytes, flags);  // a registration of the worker itself
  ++begun;
  while (!mayLoad) usleep(50);
  return registerAtOnce(memory, bytes, flags);
}

void adaptRegistering(stub::Driver& driver) { registerAtOnce = std::exchange(driver.cuMemHostRegister_v2, registerWhenLet); }

constexpr uint64_t madeLink = 77;
decltype(stub::Driver::cuLinkAddData_v2) addAtOnce;

CUresult addWhenLet(CUlinkState link, CUjitInputType type, void* data, size_t bytes, const char* name, unsigned count,
                    CUjit_option* options, void** values) {
  ++begun;
  while (!mayLoad) usleep(50);
  return addAtOnce(link, type, data, bytes, name, count, options, values);
}

void adaptLinking(stub::Driver& driver) { addAtOnce = std::exchange(driver.cuLinkAddData_v2, addWhenLet); }

std::atomic<int> references{0};  // references that the driver has
decltype(stub::Driver::cuTexRefCreate) createAtOnce;
decltype(stub::Driver::cuTexRefDestroy) destroyAtOnce;

void adaptReferences(stub::Driver& driver) {
  createAtOnce = std::exchange(driver.cuTexRefCreate, [](CUtexref* made) {
    ++references;
    return createAtOnce(made);
  });
  destroyAtOnce = std::exchange(driver.cuTexRefDestroy, [](CUtexref ended) {
    --references;
    return destroyAtOnce(ended);
  });
}

std::atomic<unsigned> retained{0};  // devices whose context has been made, one bit each
decltype(stub::Driver::cuDevicePrimaryCtxRetain) retainAtOnce;

void adaptRetaining(stub::Driver& driver) {
  retainAtOnce = std::exchange(driver.cuDevicePrimaryCtxRetain, [](CUcontext* context, CUdevice device) {
    retained |= 1u << device;
    return retainAtOnce(context, device);
  });
}

// Runs `body` with a worker whose driver functions `adapted` replaces.
std::string inHeldWorker(TestSession& session, const TestSession::Adapt& adapted, const TestSession::Body& body) {
  return session.inWorker(
      [&](stub::Worker& worker) {
        KJ_DEFER(mayLoad = true);  // the worker's end waits for the driver, also if `body` throws
        worker.proceed();
        body(worker);
      },
      "", adapted);
}

// An address range that neither the system nor a sanitizer chooses by itself: a thread's stack may take an address that was free before.
constexpr uint64_t programsAddress = 0x5500'0000'0000;

// The module is loaded if its function is found. A second load of the same image comes behind the first.
void requireLoaded(TestSession& session) {
  bringImage(session, 2, madeImage());
  session.require(moduleLoad(0, made::module + 1, 2));
  KJ_REQUIRE(session.finish() == CUDA_SUCCESS);
  session.require(moduleFunction(0, made::addFunction, made::module, "add"));
}

}  // namespace

TEST_CASE("a ring continues while a module is loaded") {
  TestSession session;
  auto problem = inHeldWorker(session, adapt, [&](stub::Worker&) {
    beginToLoad(session);
    session.require(synchronize());
    bringImage(session, 9, madeImage());
    KJ_REQUIRE(begun == 1 && !mayLoad);
    mayLoad = true;
    requireLoaded(session);
  });
  CHECK(problem == "");
}

TEST_CASE("an image that is dropped while its module is loaded stays until the load is done") {
  TestSession session;
  auto problem = inHeldWorker(session, adapt, [&](stub::Worker&) {
    beginToLoad(session);
    session.post(makeFrame<api::Cuda::BlobDropParams>(0, api::Method::blobDrop, 0, [](auto p) { p.setBlob(1); }));
    session.require(synchronize());
    mayLoad = true;
    requireLoaded(session);
  });
  CHECK(problem == "");
}

TEST_CASE("a link that is destroyed while the driver works on it stays until the driver is done, and its handle is invalid at once") {
  TestSession session;
  auto add = [&] {
    return makeFrame<api::Cuda::LinkAddParams>(0, api::Method::linkAdd, 0, [](auto p) {
      p.setLink(madeLink);
      p.setBlob(1);
      p.setName("input");
    });
  };
  auto problem = inHeldWorker(session, adaptLinking, [&](stub::Worker&) {
    bringImage(session, 1, madeImage());
    session.require(makeFrame<api::Cuda::LinkCreateParams>(0, api::Method::linkCreate, 0, [](auto p) { p.setLink(madeLink); }));
    session.begin(add());
    awaitDriver(session);
    session.post(makeFrame<api::Cuda::LinkDestroyParams>(0, api::Method::linkDestroy, 0, [](auto p) { p.setLink(madeLink); }));
    session.require(add());  // returns at once although the driver is held
    KJ_REQUIRE(begun == 1 && !mayLoad);
    mayLoad = true;
    KJ_REQUIRE(session.finish() == CUDA_SUCCESS);
  });
  CHECK(problem == "");
}

TEST_CASE("a quiesced worker has finished the loads that it began") {
  TestSession session;
  auto problem = inHeldWorker(session, adapt, [&](stub::Worker& worker) {
    beginToLoad(session);
    worker.quiesce([](const std::string&) { mayLoad = true; });
    KJ_REQUIRE(session.finish() == CUDA_SUCCESS);
    worker.proceed();
    session.require(moduleFunction(0, made::addFunction, made::module, "add"));
  });
  CHECK(problem == "");
}

TEST_CASE("a ring continues while memory of the program is registered") {
  TestSession session;
  auto problem = inHeldWorker(session, adaptRegistering, [&](stub::Worker&) {
    session.begin(makeFrame<api::Cuda::HostAdoptParams>(0, api::Method::hostAdopt, 0, [](auto p) {
      p.setAddress(programsAddress);
      p.setArenaAddress(hostArenaBase);
      p.setBytes(3 * MiB);
    }));
    awaitDriver(session);
    session.require(synchronize());
    mayLoad = true;
    KJ_REQUIRE(session.finish() == CUDA_SUCCESS);
  });
  CHECK(problem == "");
}

TEST_CASE("a device has a context when the session first uses it") {
  TestSession session;
  auto problem = session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        session.require(synchronize());
        KJ_REQUIRE(retained == 1u, retained.load());
        session.require(makeFrame<api::Cuda::CtxSynchronizeParams>(0, api::Method::ctxSynchronize, 2, [](auto) {}));
        KJ_REQUIRE(retained == 5u, retained.load());
        worker.quiesce();
        worker.recycle();
        KJ_REQUIRE(retained == 5u, retained.load());
      },
      "devices=3", adaptRetaining);
  CHECK(problem == "");
}

TEST_CASE("a worker that is to serve another program has no texture references of the program before") {
  TestSession session;
  auto problem = session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        session.require(makeFrame<api::Cuda::TexRefCreateParams>(0, api::Method::texRefCreate, 0, [](auto p) {
          p.setPTexRef(makeHandle(api::Kind::TEXTURE_REFERENCE, 0, 0, 1));
        }));
        KJ_REQUIRE(references == 1, references.load());
        worker.quiesce();
        worker.recycle();
        KJ_REQUIRE(references == 0, references.load());
      },
      "", adaptReferences);
  CHECK(problem == "");
}
