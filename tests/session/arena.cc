#include "intercept/session/memory/arena.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

using namespace vgpu;
using namespace vgpu::client;

namespace {
Arena leased(uint64_t bytes) {
  Arena arena(deviceArenaBase, 1 * TiB);
  auto place = arena.placeLease(bytes);
  arena.reserveLease(*place, bytes);
  arena.settleLease(*place, true);
  return arena;
}
}  // namespace

TEST_CASE("an arena without a lease has nothing to give") {
  Arena arena(deviceArenaBase, 1 * TiB);
  CHECK(!arena.allocate(1));
  CHECK(arena.placeLease(2 * MiB) == deviceArenaBase);
}

TEST_CASE("in an arena with gaps no allocation crosses from one lease into another") {
  Arena arena(hostArenaBase, 1 * TiB, 4 * KiB);
  for (int i = 0; i < 3; ++i) {
    auto place = arena.placeLease(2 * MiB);
    CHECK(place == hostArenaBase + i * (2 * MiB + 4 * KiB));
    arena.reserveLease(*place, 2 * MiB);
    arena.settleLease(*place, true);
  }
  CHECK(!arena.allocate(2 * MiB + 1));
  std::vector<uint64_t> all;
  for (int i = 0; i < 3; ++i) all.push_back(*arena.allocate(2 * MiB));
  for (uint64_t address : all) CHECK((address - hostArenaBase) % (2 * MiB + 4 * KiB) == 0);
  // The place of the middle lease is reused, with its gaps.
  arena.free(all[1]);
  auto idle = arena.takeIdleLease();
  REQUIRE(idle);
  CHECK(arena.placeLease(2 * MiB) == hostArenaBase + 3 * (2 * MiB + 4 * KiB));  // the worker still has it
  arena.settleLease(idle->address, false);
  CHECK(arena.placeLease(2 * MiB) == idle->address);
  CHECK(arena.placeLease(2 * MiB + 4 * KiB) == hostArenaBase + 3 * (2 * MiB + 4 * KiB));
}

TEST_CASE("a refused lease leaves its place free") {
  Arena arena(deviceArenaBase, 1 * TiB);
  arena.reserveLease(deviceArenaBase, 2 * MiB);
  CHECK(arena.placeLease(2 * MiB) == deviceArenaBase + 2 * MiB);
  arena.settleLease(deviceArenaBase, false);
  CHECK(arena.placeLease(2 * MiB) == deviceArenaBase);
  CHECK(!arena.allocate(1));
}

TEST_CASE("allocations are aligned, apart from each other, and inside the lease") {
  Arena arena = leased(2 * MiB);
  auto one = arena.allocate(1), two = arena.allocate(300);
  REQUIRE((one && two));
  CHECK(*one % allocationAlignment == 0);
  CHECK(*two == *one + allocationAlignment);
  CHECK(arena.find(*two + 299)->address == *two);
  CHECK(!arena.find(*two + allocationAlignment));
  CHECK(!arena.allocate(4 * MiB));
}

TEST_CASE("freeing twice, or an address within an allocation, is refused") {
  Arena arena = leased(2 * MiB);
  uint64_t address = *arena.allocate(1000);
  CHECK(!arena.free(address + 256));
  CHECK(arena.free(address));
  CHECK(!arena.free(address));
}

TEST_CASE("only a lease without allocations is idle") {
  Arena arena = leased(2 * MiB);
  uint64_t address = *arena.allocate(1000);
  CHECK(!arena.takeIdleLease());
  arena.free(address);
  auto idle = arena.takeIdleLease();
  REQUIRE(idle);
  CHECK(idle->bytes == 2 * MiB);
  CHECK(arena.freeBytes() == 0);
  CHECK(!arena.allocate(1));
}

TEST_CASE("takeLeastFree() returns the least free memory since its last call") {
  Arena arena = leased(10 * MiB);
  CHECK(arena.takeLeastFree() == 0);  // the lease is newer than the last call
  CHECK(arena.takeLeastFree() == 10 * MiB);
  uint64_t address = *arena.allocate(4 * MiB);
  arena.free(address);
  CHECK(arena.takeLeastFree() == 6 * MiB);
  CHECK(arena.takeLeastFree() == 10 * MiB);
  arena.takeIdleLease();
  CHECK(arena.takeLeastFree() == 0);
}

TEST_CASE("an allocation with a lease of its own takes a whole lease of that size, or none") {
  Arena arena = leased(10 * MiB);
  uint64_t second = *arena.placeLease(6 * MiB);
  arena.reserveLease(second, 6 * MiB);
  arena.settleLease(second, true);
  CHECK(!arena.allocateLease(8 * MiB));   // nor a part of the larger one
  CHECK(!arena.allocateLease(16 * MiB));  // nor both, though they are adjacent
  uint64_t small = *arena.allocate(1000);  // at the beginning of the larger one
  CHECK(!arena.allocateLease(10 * MiB));
  auto own = arena.allocateLease(5 * MiB + 1);
  REQUIRE(own);
  CHECK(*own == second);
  CHECK(!arena.allocateLease(5 * MiB + 1));
  CHECK(arena.free(*own));
  CHECK(arena.free(small));
  CHECK(arena.freeBytes() == 16 * MiB);
}

TEST_CASE("any order of allocations and frees keeps them disjoint and loses no byte") {
  Arena arena = leased(64 * MiB);
  std::mt19937 random(7);
  std::map<uint64_t, uint64_t> held;
  for (int i = 0; i < 20'000; ++i) {
    if (held.empty() || random() % 3 != 0) {
      uint64_t bytes = 1 + random() % (200 * KiB);
      auto address = arena.allocate(bytes);
      if (!address) continue;
      auto next = held.lower_bound(*address);
      REQUIRE((next == held.end() || *address + bytes <= next->first));
      REQUIRE((next == held.begin() || std::prev(next)->first + std::prev(next)->second <= *address));
      held[*address] = bytes;
    } else {
      auto victim = std::next(held.begin(), static_cast<long>(random() % held.size()));
      REQUIRE(arena.free(victim->first));
      held.erase(victim);
    }
  }
  for (auto& [address, bytes] : held) REQUIRE(arena.free(address));
  CHECK(arena.freeBytes() == 64 * MiB);
  CHECK(arena.allocate(64 * MiB));
}
