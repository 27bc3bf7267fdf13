// Images that the node has already: what a session is spared, what of it a snapshot holds, and what a hostile program
// asks.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

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

// Brings `made`'s image to a worker, loads it, and has the worker do nothing else.
void load(TestSession& session, stub::Worker& worker) {
  worker.proceed();
  bringImage(session, 1, madeImage());
  session.require(moduleLoad(0, made::module, 1));
  session.require(moduleFunction(0, made::addFunction, made::module, "add"));
}

// What a session whose images are all sent or all found has counted.
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

TEST_CASE("the first session sends an image, every later one finds it, and where there is no store every one sends") {
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
    "a snapshot holds images that came from the store: it is resumed where there is none, and saved there again") {
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
  CHECK(namesIn(store).empty());  // what a snapshot held is not stored
}

TEST_CASE(
    "an image is stored under the digest of what was sent, whatever the program said, and only once it is accepted") {
  ScratchDirectory node;
  std::string store = node.path + "/images", nonsense = "this is no PTX";
  StoredSession session(store);
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    bringImage(session, 7, bytesOf(nonsense));
    KJ_REQUIRE(session.call(moduleLoad(0, 107, 7)) != 0, "nonsense was loaded");
    KJ_REQUIRE(namesIn(store).empty(), "a refused image was kept");
    // Says that it will send one thing, and sends another.
    session.require(blobFind(1, digestOf(bytesOf(nonsense)), madeImage().size()));
    KJ_REQUIRE(!session.saysFound());
    std::memcpy(session.segment().slab(0), madeImage().data(), madeImage().size());
    session.post(blobWrite(1, madeImage().size()));
    session.require(moduleLoad(0, made::module, 1));
  }) == "");
  CHECK(namesIn(store) == std::set<std::string>{nameOf(madeImage())});
}

TEST_CASE("what no honest program asks of the store is an error for it, and the worker goes on") {
  ScratchDirectory node;
  std::string store = node.path + "/images";
  StoredSession first(store), hostile(store), after(store);
  CHECK(first.inWorker([&](stub::Worker& worker) { load(first, worker); }) == "");
  auto digest = digestOf(madeImage());
  uint64_t bytes = madeImage().size();
  CHECK(hostile.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    std::vector<uint8_t> longer(4000, 1);
    for (size_t size : {0, 1, 31, 33, 64, 4000})
      KJ_REQUIRE(hostile.call(blobFind(1, std::span(longer).first(size), bytes)) == invalid, "digest", size);
    for (uint64_t size : {uint64_t{0}, bytes - 1, bytes + 1, ~uint64_t{0}, uint64_t{1} << 33})
      KJ_REQUIRE(hostile.call(blobFind(1, digest, size)) == invalid, "bytes", size);
    KJ_REQUIRE(hostile.images().found == 0);
    KJ_REQUIRE(hostile.call(moduleLoad(0, 105, 1)) == CUDA_ERROR_INVALID_IMAGE, "a blob that was never found");

    // A name that nobody has stored anything under.
    hostile.require(blobFind(2, std::span(longer).first(32), bytes));
    KJ_REQUIRE(!hostile.saysFound());

    hostile.require(blobFind(1, digest, bytes));
    KJ_REQUIRE(hostile.saysFound());
    KJ_REQUIRE(hostile.call(blobFind(1, digest, bytes)) == invalid, "a number twice");
    std::memset(hostile.segment().slab(0), 0x55, bytes);
    hostile.post(blobWrite(1, bytes));  // over the store's own file
    hostile.post(synchronize());
    hostile.require(moduleLoad(0, made::module, 1));
    KJ_REQUIRE(hostile.segment().header().deferred[0].load() == invalid, "the store's file was written");
    hostile.require(moduleFunction(0, made::addFunction, made::module, "add"));

    // A number that is being sent, too.
    hostile.segment().header().deferred[0] = 0;
    hostile.post(blobWrite(3, bytes));
    KJ_REQUIRE(hostile.call(blobFind(3, digest, bytes)) == invalid, "a number that is being sent");
  }) == "");
  CHECK(after.inWorker([&](stub::Worker& worker) { load(after, worker); }) == "");
  CHECK(hasFound(after, 1));
}
