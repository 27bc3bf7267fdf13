#include "intercept/session/memory/stream-pools.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "fake-session.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

constexpr PoolSource ofDevice{PoolSource::Kind::device, 0};
constexpr uint64_t unit = 512;

// Allocates and frees memory in streams given by number; 0 is the default stream and needs no object.
class Pools {
 public:
  StreamPools::Block& free(uint64_t address, uint64_t units, uint64_t sequence = 1, uint64_t stream = 0,
                           const PoolSource& source = ofDevice) {
    pools.allocated(address, units * unit, units * unit - 1, pool, source);
    StreamPools::Fences& fences = *pools.fencesOf(0, stream, session.handles);
    StreamPools::Block& block = pools.cool(address, units * unit, pools.find(address), source, true, fences);
    if (sequence != 0) block.isFenced(sequence);
    return block;
  }
  // Takes the address that an allocation of `units` would get; 0: no freed memory suits it.
  uint64_t take(uint64_t units, uint64_t stream = 0, const PoolSource& source = ofDevice) {
    StreamPools::Block* found = pools.findFreed(source, 0, stream, units * unit);
    if (found == nullptr) return 0;
    pools.reuse(*found, units * unit, pool, *pools.find(pool));
    return found->address;
  }
  uint64_t used() { return pools.find(pool)->used; }

  Session& session = FakeSession::one().session;
  StreamPools pools{session.segment, session.completionWords};
  const CUmemoryPool pool = pools.defaultOf(0);
};

}  // namespace

TEST_CASE("memory freed in a stream is reused there, the smallest block that fits without much waste") {
  Pools of;
  for (uint64_t units : {20, 9, 8, 10, 16}) of.free(units << 20, units);
  CHECK(of.used() == 0);
  CHECK(of.take(21) == 0);
  CHECK(of.take(7) == 8 << 20);
  CHECK(of.used() == 7 * unit);
  CHECK(of.take(8) == 9 << 20);
  CHECK(of.take(8) == 10 << 20);
  CHECK(of.take(8) == 0);  // 16 would be twice as much
  CHECK(of.take(13) == 16 << 20);
  CHECK(of.take(16) == 20 << 20);
  CHECK_FALSE(of.pools.hasAny());
  CHECK(of.used() == (7 + 8 + 8 + 13 + 16) * unit);
}

TEST_CASE("before its fence is sent, freed memory is not reused by another stream or source") {
  Pools of;
  StreamPools::Block& unsent = of.free(1 << 20, 4, 0);
  of.free(2 << 20, 4, 1, 77);
  of.free(3 << 20, 4, 1, 0, {PoolSource::Kind::device, 1});
  of.free(4 << 20, 5, 1, 0, {PoolSource::Kind::managed, 0});
  CHECK(of.take(4) == 0);
  CHECK(of.take(4, 0, {PoolSource::Kind::managed, 0}) == 0);  // managed memory must match exactly
  CHECK(of.take(5, 0, {PoolSource::Kind::managed, 0}) == 4 << 20);
  CHECK(of.take(4, 77) == 2 << 20);
  unsent.isFenced(1);
  CHECK(of.take(4) == 1 << 20);
}

TEST_CASE("memory whose stream has passed its free is collected, in any order of frees") {
  Pools of;
  const uint32_t word = of.pools.fencesOf(0, 0, of.session.handles)->completion;
  for (uint64_t i = 1; i <= 6; ++i) of.free(i << 20, i % 2 == 0 ? 4 : 5, i);
  of.session.segment.completionWord(word).done.store(4);
  CHECK(of.take(4) == 6 << 20);
  std::vector<uint64_t> past = of.pools.takePast(0, false);
  std::ranges::sort(past);
  CHECK(past == std::vector<uint64_t>{1 << 20, 2 << 20, 3 << 20, 4 << 20});
  CHECK(of.pools.takePast(0, false).empty());
  for (uint64_t address : past) {
    CHECK(of.pools.isPendingFree(address));
    of.pools.freed(address);  // its free has completed
    of.pools.drop(address);
    CHECK_FALSE(of.pools.isPendingFree(address));
  }
  CHECK(of.take(5) == 5 << 20);
  CHECK(of.pools.poolOf(5 << 20) == of.pool);
  of.pools.freed(5 << 20);
  CHECK(of.pools.poolOf(5 << 20) == nullptr);
  CHECK_FALSE(of.pools.hasAny());
}

TEST_CASE("memory freed in another stream is found with its fence, the smallest block that fits without much waste") {
  Pools of;
  of.free(1 << 20, 40, 5);
  of.free(2 << 20, 30, 6, 77);
  of.free(3 << 20, 20, 7);
  of.free(4 << 20, 30, 0);  // the fence is not sent
  of.free(5 << 20, 31, 8, 0, {PoolSource::Kind::managed, 0});
  StreamPools::Block* found = of.pools.findFreed(ofDevice, 25 * unit);
  REQUIRE(found != nullptr);
  CHECK(found->address == 2 << 20);
  CHECK(of.pools.fenceOf(*found).record.sequence == 6);
  of.pools.reuse(*found, 25 * unit, of.pool, *of.pools.find(of.pool));
  CHECK(of.pools.findFreed(ofDevice, 25 * unit) == nullptr);  // 40 would be half as much again
  CHECK(of.pools.findFreed(ofDevice, 33 * unit)->address == 1 << 20);
  CHECK(of.pools.findFreed(ofDevice, 41 * unit) == nullptr);
  CHECK(of.pools.findFreed({PoolSource::Kind::managed, 0}, 30 * unit) == nullptr);  // managed memory must match exactly
}

TEST_CASE("the amount of pending frees is known, and the fences that they follow") {
  Pools of;
  constexpr PoolSource managed{PoolSource::Kind::managed, 0};
  of.free(1 << 20, 4, 1);
  of.free(2 << 20, 5, 2);
  of.free(3 << 20, 6, 0);  // the fence is not sent
  of.free(4 << 20, 7, 3, 0, managed);
  CHECK(of.pools.freedBytes(ofDevice) == (4 + 5 + 6) * unit);
  CHECK(of.pools.freedBytes(managed) == 7 * unit);
  CHECK(of.pools.freedBytes({PoolSource::Kind::device, 1}) == 0);
  auto sequences = [&](const PoolSource& source) {
    std::vector<uint64_t> all;
    for (auto& fence : of.pools.pendingFrees(source)) all.push_back(fence.record.sequence);
    std::ranges::sort(all);
    return all;
  };
  CHECK(sequences(ofDevice) == std::vector<uint64_t>{1, 2});
  CHECK(sequences(managed) == std::vector<uint64_t>{3});
  CHECK(of.take(5) == 2 << 20);
  CHECK(of.pools.freedBytes(ofDevice) == (4 + 6) * unit);
  of.session.segment.completionWord(of.pools.pendingFrees(ofDevice).front().record.completion).done.store(1);
  for (uint64_t address : of.pools.takePast(0, false)) of.pools.drop(address);
  CHECK(of.pools.freedBytes(ofDevice) == 6 * unit);
  CHECK(sequences(ofDevice).empty());
}
