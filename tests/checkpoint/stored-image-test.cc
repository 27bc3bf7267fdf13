// Images that the node already has: what a session need not send, what a snapshot holds of them, and what a hostile program may ask.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "session-fixture.h"
#include "vgpu/wire/image-digest.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

// A session of a node whose store is `folder`.
struct StoredSession : TestSession {
  explicit StoredSession(const std::string& folder) { imageStore = folder; }
};

std::string nameOf(std::span<const std::byte> image) { return hexOf(digestOf(image)); }

// Brings `made`'s image to a worker, loads it, and quiesces the worker.
void load(TestSession& session, stub::Worker& worker) {
  worker.proceed();
  bringImage(session, 1, madeImage());
  session.require(moduleLoad(0, made::module, 1));
  session.require(moduleFunction(0, made::addFunction, made::module, "add"));
}

// Whether the counters show that all images of a session were sent (hasSent), or found (hasFound).
bool hasSent(TestSession& session, uint64_t images) {
  auto& counted = session.images();
  return counted.sent == images && counted.sentBytes == images * madeImage().size();
}
bool hasFound(TestSession& session, uint64_t images) {
  auto& counted = session.images();
  return counted.found == images && counted.foundBytes == images * madeImage().size();
}

constexpr int32_t invalid = CUDA_ERROR_INVALID_VALUE;

}  // namespace

TEST_CASE("the first session sends an image, every later one finds it; without a store every session sends it") {
  ScratchDirectory node;
  std::string store = node.path + "/images";
  for (int round = 0; round < 3; ++round) {
    StoredSession session(store), without("");
    CHECK(session.inWorker([&](stub::Worker& worker) { load(session, worker); }) == "");
    CHECK(hasSent(session, round == 0 ? 1 : 0));
    CHECK(hasFound(session, round == 0 ? 0 : 1));
    CHECK(without.inWorker([&](stub::Worker& worker) { load(without, worker); }) == "");
    CHECK(hasSent(without, 1));
    CHECK(hasFound(without, 0));
  }
  CHECK(namesIn(store) == std::set<std::string>{nameOf(madeImage())});
}

TEST_CASE("an image whose file was damaged is sent and kept again") {
  ScratchDirectory node;
  std::string store = node.path + "/images", file = store + "/" + nameOf(madeImage());
  StoredSession first(store), second(store), third(store);
  CHECK(first.inWorker([&](stub::Worker& worker) { load(first, worker); }) == "");
  std::string good = readFile(file), bent = good;
  bent[bent.size() / 2] ^= 1;
  writeFile(file, bent);
  CHECK(second.inWorker([&](stub::Worker& worker) { load(second, worker); }) == "");
  CHECK(hasSent(second, 1));
  CHECK(readFile(file) == good);
  CHECK(third.inWorker([&](stub::Worker& worker) { load(third, worker); }) == "");
  CHECK(hasFound(third, 1));
}

TEST_CASE(
    "a snapshot contains images that came from the store: it can be resumed and saved again on a node without one") {
  ScratchDirectory node;
  std::string store = node.path + "/images";
  StoredSession first(store), session(store);
  CHECK(first.inWorker([&](stub::Worker& worker) { load(first, worker); }) == "");
  std::string list = session.scratch.path + "/list", path = session.scratch.path + "/snapshot";
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    save(worker, path, list, someIdentity(), nullptr);
  }) == "");
  CHECK(hasFound(session, 1));
  std::filesystem::remove_all(store);
  session.imageStore.clear();
  CHECK(session.inWorker([&](stub::Worker& worker) {
    restore(worker, path, nullptr);
    save(worker, path + "-again", list, someIdentity(), nullptr);
  }) == "");
  session.imageStore = store;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, path + "-again", nullptr));
    requireFinished(session);
  }) == "");
  CHECK(namesIn(store).empty());  // an image from a snapshot is not stored
}

TEST_CASE(
    "an image is stored under the digest of the bytes sent, whatever the program claimed, and only after it is accepted") {
  ScratchDirectory node;
  std::string store = node.path + "/images", nonsense = "this is no PTX";
  StoredSession session(store);
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    bringImage(session, 7, bytesOf(nonsense));
    KJ_REQUIRE(session.call(moduleLoad(0, 107, 7)) != 0, "nonsense was loaded");
    KJ_REQUIRE(namesIn(store).empty(), "a refused image was kept");
    // Announces one image and sends another.
    session.require(blobFind(1, digestOf(bytesOf(nonsense)), madeImage().size()));
    KJ_REQUIRE(!session.saysFound());
    std::memcpy(session.segment().slab(0), madeImage().data(), madeImage().size());
    session.post(blobWrite(1, madeImage().size()));
    session.require(moduleLoad(0, made::module, 1));
  }) == "");
  CHECK(namesIn(store) == std::set<std::string>{nameOf(madeImage())});
}

TEST_CASE("invalid requests to the store are errors for their program, and the worker goes on") {
  ScratchDirectory node;
  std::string store = node.path + "/images";
  StoredSession first(store), hostile(store), after(store);
  CHECK(first.inWorker([&](stub::Worker& worker) { load(first, worker); }) == "");
  auto digest = digestOf(madeImage());
  uint64_t bytes = madeImage().size();
  CHECK(hostile.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    std::vector<uint8_t> longer(4000, 1);
    for (size_t size : {1, 31, 33, 64, 4000})
      KJ_REQUIRE(hostile.call(blobFind(1, std::span(longer).first(size), bytes)) == invalid, "digest", size);
    for (uint64_t size : {uint64_t{0}, bytes - 1, bytes + 1, ~uint64_t{0}, uint64_t{1} << 33})
      KJ_REQUIRE(hostile.call(blobFind(1, digest, size)) == invalid, "bytes", size);
    for (uint64_t size : {~uint64_t{0}, uint64_t{1} << 33})
      KJ_REQUIRE(hostile.call(blobFind(1, {}, size)) == CUDA_ERROR_OUT_OF_MEMORY, "bytes to be sent", size);
    KJ_REQUIRE(hostile.images().found == 0);
    KJ_REQUIRE(hostile.call(moduleLoad(0, 105, 1)) == CUDA_ERROR_INVALID_IMAGE, "a blob that was never found");

    // A digest under which nothing is stored.
    hostile.require(blobFind(2, std::span(longer).first(32), bytes));
    KJ_REQUIRE(!hostile.saysFound());

    hostile.require(blobFind(1, digest, bytes));
    KJ_REQUIRE(hostile.saysFound());
    KJ_REQUIRE(hostile.call(blobFind(1, digest, bytes)) == invalid, "a number twice");
    std::memset(hostile.segment().slab(0), 0x55, bytes);
    hostile.post(blobWrite(1, bytes));  // would overwrite the store's own file
    hostile.require(synchronize());
    hostile.require(moduleLoad(0, made::module, 1));
    KJ_REQUIRE(hostile.segment().header().deferred[0].load() == invalid, "the store's file was written");
    hostile.require(moduleFunction(0, made::addFunction, made::module, "add"));

    // A number whose image is being sent.
    KJ_REQUIRE(hostile.call(blobFind(2, digest, bytes)) == invalid, "a number that is being sent");
  }) == "");
  CHECK(after.inWorker([&](stub::Worker& worker) { load(after, worker); }) == "");
  CHECK(hasFound(after, 1));
}

TEST_CASE("an image that arrives out of order, or exceeds its announced size, is an error, and an incomplete one is missing") {
  StoredSession session("");
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    auto deferred = [&] {
      session.require(synchronize());
      return session.segment().header().deferred[0].exchange(0);
    };
    session.require(blobFind(1, {}, 1000));
    session.post(blobWrite(1, 1000, 0, 400));
    KJ_REQUIRE(deferred() == 0);
    for (auto [total, offset, piece] : {std::array<uint32_t, 3>{1000, 0, 400}, {1000, 800, 200}, {1000, 399, 1},
                                        {1000, 400, 601}, {999, 400, 100}, {4000, 400, 1000}}) {
      session.post(blobWrite(1, total, offset, piece));
      KJ_REQUIRE(deferred() == invalid, total, offset, piece);
    }
    KJ_REQUIRE(session.call(moduleLoad(0, 105, 1)) == CUDA_ERROR_INVALID_IMAGE && session.saysMissing());
    KJ_REQUIRE(session.call(moduleLoad(0, 105, 2)) == CUDA_ERROR_INVALID_IMAGE && session.saysMissing());
    session.post(blobWrite(2, 1000, 0, 400));
    KJ_REQUIRE(deferred() == 0, "a piece of an image that nobody announced belongs to nothing");
    session.post(blobWrite(1, 1000, 400, 600));
    KJ_REQUIRE(deferred() == 0);
    KJ_REQUIRE(session.call(moduleLoad(0, 105, 1)) != CUDA_SUCCESS && !session.saysMissing());
  }) == "");
}

TEST_CASE("an image that is being sent during a suspend is not in the snapshot, is missing afterwards, and is sent again") {
  StoredSession session("");
  auto image = madeImage();
  uint32_t half = static_cast<uint32_t>(image.size() / 2), rest = static_cast<uint32_t>(image.size()) - half;
  std::string path = session.scratch.path + "/snapshot";
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    session.require(blobFind(1, {}, image.size()));
    std::memcpy(session.segment().slab(0), image.data(), half);
    session.post(blobWrite(1, image.size(), 0, half));
    session.require(synchronize());
    session.commit();
    worker.quiesce();
    std::memcpy(session.segment().slab(0), image.data() + half, rest);
    session.post(blobWrite(1, image.size(), half, rest));
    save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
  }) == "");
  CHECK(session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, path, nullptr));
    KJ_REQUIRE(session.call(moduleLoad(0, made::module, 1)) == CUDA_ERROR_INVALID_IMAGE && session.saysMissing());
    KJ_REQUIRE(session.segment().header().deferred[0].load() == 0, "the piece in the pending failed");
    bringImage(session, 1, image);
    session.require(moduleLoad(0, made::module, 1));
    session.require(moduleFunction(0, made::addFunction, made::module, "add"));
  }) == "");
}

TEST_CASE("zeros of an image take no room in a snapshot, nor in the worker that restores it") {
  StoredSession session("");
  std::string path = session.scratch.path + "/snapshot";
  constexpr uint64_t bytes = 256 * MiB;
  auto residentBytes = [] {
    uint64_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * 4096;
  };
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    session.require(blobFind(1, {}, bytes));
    std::memset(session.segment().slab(0), 0, slabBytes);
    std::memcpy(session.segment().slab(0), madeImage().data(), madeImage().size());
    for (uint64_t at = 0; at < bytes; at += slabBytes) {
      session.post(blobWrite(1, bytes, at, slabBytes));
      if (at == 0) session.require(synchronize());  // before the slab is written again
      if (at == 0) std::memset(session.segment().slab(0), 0, slabBytes);
    }
    session.require(moduleLoad(0, made::module, 1));
    session.commit();
    worker.quiesce();
    save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
  }) == "");
  CHECK(storedBytes(readHeader(SnapshotReader(path))) < 64 * KiB);
  CHECK(session.inWorker([&](stub::Worker& worker) {
    uint64_t before = residentBytes();
    auto restored = restore(worker, path, nullptr);
#ifndef __SANITIZE_THREAD__  // whose shadow memory becomes resident even for reads
    KJ_REQUIRE(residentBytes() - before < bytes / 2, before, residentBytes());
#else
    (void)before;
#endif
    proceed(worker, restored);
    session.require(moduleFunction(0, made::addFunction, made::module, "add"));
  }) == "");
}

TEST_CASE("an image whose sizes point beyond its end does not reach the driver") {
  StoredSession session("");
  std::string fatbinary("\x50\xed\x55\xba\1\0\x10\0\0\0\0\0\0\0\0\x7f", 16);
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    bringImage(session, 1, bytesOf(fatbinary));
    KJ_REQUIRE(session.call(moduleLoad(0, 105, 1)) == CUDA_ERROR_INVALID_IMAGE && !session.saysMissing());
  }) == "");
}
