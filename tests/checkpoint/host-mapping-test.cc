// Pinned memory that a program maps at an address that it has reserved: physical memory of the host.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "checkpoint/snapshot.h"
#include "session-fixture.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

constexpr uint64_t pinned = hostArenaBase + 4 * MiB, bytes = 4 * MiB, mapped = mappedArenaBase + 8 * MiB;

RecordedFrame leaseHost() {
  return makeFrame<api::Cuda::HostLeaseParams>(0, api::Method::hostLease, 0, [](auto p) {
    p.setAddress(pinned);
    p.setBytes(bytes);
  });
}

RecordedFrame endHostLease() {
  return makeFrame<api::Cuda::EndHostLeaseParams>(0, api::Method::endHostLease, 0, [](auto p) { p.setAddress(pinned); });
}

RecordedFrame mapHost(uint64_t address, uint64_t arenaAddress, uint64_t size = bytes) {
  return makeFrame<api::Cuda::PhysicalMapHostParams>(0, api::Method::physicalMapHost, 0, [&](auto p) {
    p.setAddress(address);
    p.setBytes(size);
    p.setArenaAddress(arenaAddress);
  });
}

RecordedFrame unmap(uint64_t address) {
  return makeFrame<api::Cuda::PhysicalUnmapParams>(0, api::Method::physicalUnmap, 0, [&](auto p) { p.setAddress(address); });
}

RecordedFrame allow(uint64_t address, CUmemAccess_flags flags) {
  return makeFrame<api::Cuda::PhysicalAccessParams>(0, api::Method::physicalAccess, 0, [&](auto p) {
    p.setAddress(address);
    p.setDevice(0);
    p.setFlags(flags);
  });
}

void buildMapped(TestSession& session, stub::Worker& worker) {
  worker.proceed();
  session.require(leaseHost());
  session.require(mapHost(mapped, pinned));
  session.require(allow(mapped, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

}  // namespace

TEST_CASE("pinned memory mapped a second time is the same memory, also in the next worker, and is stored in no snapshot") {
  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildMapped(session, worker);
    bringImage(session, 1, madeImage());
    session.require(moduleLoad(0, made::module, 1));
    session.require(moduleFunction(0, made::addFunction, made::module, "add"));
    session.post(add(mapped + 64, 5));
    session.require(synchronize());
    KJ_REQUIRE(session.readWord(pinned + 64) == 5);
    session.commit();
    worker.quiesce();
    KJ_REQUIRE(save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr).deviceBytes < bytes);
  }) == "");
  CHECK(session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, path, nullptr));
    session.post(add(pinned + 64, 1));
    session.post(add(mapped + 64, 1));
    session.require(synchronize());
    uint32_t word = session.readWord(mapped + 64);
    KJ_REQUIRE(word == 7, word);
  }) == "");
}

TEST_CASE("pinned memory that is mapped a second time stays leased until the mapping ends") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildMapped(session, worker);
    KJ_REQUIRE(session.call(endHostLease()) == CUDA_ERROR_INVALID_VALUE);
    session.require(unmap(mapped));
    session.require(endHostLease());
    KJ_REQUIRE(session.call(mapHost(mapped, pinned)) == CUDA_ERROR_INVALID_VALUE);
  }) == "");
}

TEST_CASE("only whole 2 MiB pieces of a lease are mapped a second time, at free addresses that a program may reserve") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildMapped(session, worker);
    auto isRefused = [&](RecordedFrame frame) { return session.call(std::move(frame)) == CUDA_ERROR_INVALID_VALUE; };
    KJ_REQUIRE(isRefused(mapHost(mapped, pinned)) && isRefused(mapHost(mapped + 2 * MiB, pinned)));
    KJ_REQUIRE(isRefused(mapHost(mapped + 8 * MiB, pinned + 2 * MiB)) && isRefused(mapHost(mapped + 8 * MiB, pinned - 2 * MiB)));
    KJ_REQUIRE(isRefused(mapHost(mapped + 8 * MiB + 4096, pinned, 2 * MiB)) && isRefused(mapHost(mapped + 8 * MiB, pinned, 4096)));
    KJ_REQUIRE(isRefused(mapHost(mapped + 8 * MiB, pinned, 0)) && isRefused(mapHost(mapped + 8 * MiB, mapped, bytes)));
    KJ_REQUIRE(isRefused(mapHost(pinned, pinned)) && isRefused(mapHost(made::arena, pinned)));
    KJ_REQUIRE(isRefused(mapHost(mappedArenaBase + mappedArenaBytes - 2 * MiB, pinned)) && isRefused(mapHost(windowArenaBase, pinned)));
    session.require(mapHost(mapped + 8 * MiB, pinned + 2 * MiB, 2 * MiB));
    KJ_REQUIRE(isRefused(allow(mapped + 2 * MiB, CU_MEM_ACCESS_FLAGS_PROT_READ)) && isRefused(unmap(mapped + 2 * MiB)));
  }) == "");
}

TEST_CASE("a device can use the mapping as long as it has access") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildMapped(session, worker);
    bringImage(session, 1, madeImage());
    session.require(moduleLoad(0, made::module, 1));
    session.require(moduleFunction(0, made::addFunction, made::module, "add"));
    session.require(allow(mapped, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    session.require(allow(mapped, CU_MEM_ACCESS_FLAGS_PROT_READ));
    session.post(add(mapped, 3));
    session.require(synchronize());
    KJ_REQUIRE(session.readWord(pinned) == 3);
    session.require(allow(mapped, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    session.post(add(mapped, 3));
    KJ_REQUIRE(session.call(synchronize()) != CUDA_SUCCESS, "a kernel used memory that no device may use");
  }) == "");
}
