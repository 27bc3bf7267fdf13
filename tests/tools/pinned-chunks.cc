#include "tools/vgpud/pinned-chunks.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "vgpu/base/sizes.h"

using namespace vgpu;
using namespace vgpu::daemon;

namespace {

constexpr uint64_t chunk = 2 * MiB;

PinnedName named(uint64_t number, uint64_t bytes = chunk) { return {{}, {{number, 0}, bytes}}; }

// Takes room for the chunks first, first + 1, … and names them.
void keep(PinnedChunks::Hold& hold, uint64_t first, uint64_t count, uint64_t bytes = chunk) {
  for (uint64_t number = first; number < first + count; ++number) {
    auto offset = hold.take(bytes);
    REQUIRE(offset);
    REQUIRE(hold.name(*offset, named(number, bytes)));
  }
}

bool has(PinnedChunks& chunks, uint64_t number, uint64_t bytes = chunk) {
  return PinnedChunks::Hold(chunks).find(named(number, bytes)).has_value();
}

}  // namespace

TEST_CASE("a chunk that nobody holds is found until its room is needed; the chunk released first is dropped first") {
  PinnedChunks chunks(4 * chunk);
  { PinnedChunks::Hold first(chunks); keep(first, 1, 2); }
  { PinnedChunks::Hold second(chunks); keep(second, 3, 2); }
  for (uint64_t number = 1; number <= 4; ++number) CHECK(has(chunks, number));  // and they are released in this order
  PinnedChunks::Hold third(chunks);
  keep(third, 5, 1);
  CHECK(!has(chunks, 1));
  CHECK(has(chunks, 2));
  CHECK(chunks.heldBytes() == chunk);
  CHECK(chunks.idleBytes() == 3 * chunk);
}

TEST_CASE("held chunks are never dropped to make room") {
  PinnedChunks chunks(4 * chunk);
  PinnedChunks::Hold first(chunks), second(chunks);
  keep(first, 1, 3);
  keep(second, 4, 1);
  CHECK(!second.take(1));
  CHECK(has(chunks, 1));
  CHECK(first.bytes() == 3 * chunk);
}

TEST_CASE("a chunk with two holders stays when one of them releases it") {
  PinnedChunks chunks(2 * chunk);
  auto first = std::make_unique<PinnedChunks::Hold>(chunks);
  keep(*first, 1, 1);
  PinnedChunks::Hold second(chunks);
  CHECK(second.find(named(1)));
  CHECK(second.find(named(1)));
  first.reset();
  keep(second, 2, 1);
  CHECK(!second.take(chunk));
  CHECK(has(chunks, 1));
}

TEST_CASE("room that was taken but not named is free when its operation ends") {
  PinnedChunks chunks(2 * chunk);
  {
    PinnedChunks::Hold failed(chunks);
    CHECK(failed.take(chunk));
    CHECK(failed.take(chunk));
    CHECK(!failed.take(chunk));
  }
  CHECK(chunks.heldBytes() == 0);
  CHECK(chunks.idleBytes() == 0);
  PinnedChunks::Hold next(chunks);
  CHECK(next.take(2 * chunk));
}

TEST_CASE("if two operations bring the same chunk, both hold the one that was named first") {
  PinnedChunks chunks(2 * chunk);
  auto first = std::make_unique<PinnedChunks::Hold>(chunks), second = std::make_unique<PinnedChunks::Hold>(chunks);
  auto there = *first->take(chunk), again = *second->take(chunk);
  CHECK(first->name(there, named(1)));
  CHECK(second->name(again, named(1)));
  CHECK(chunks.heldBytes() == chunk);
  first.reset();
  CHECK(second->find(named(1)) == there);
  CHECK(second->bytes() == chunk);
  keep(*second, 2, 1);
  CHECK(has(chunks, 1));
}

TEST_CASE("the same content with another key or size is another chunk") {
  PinnedChunks chunks(4 * chunk);
  PinnedChunks::Hold hold(chunks);
  keep(hold, 1, 1);
  CHECK(!hold.find(named(1, chunk - 1)));
  PinnedName other = named(1);
  other.key.bytes[0] = 1;
  CHECK(!hold.find(other));
}

TEST_CASE("only room that was taken, has that size and no name, can be named") {
  PinnedChunks chunks(4 * chunk);
  PinnedChunks::Hold mine(chunks), other(chunks);
  auto offset = *mine.take(chunk);
  CHECK(!other.name(offset, named(1)));
  CHECK(!mine.name(offset + 4096, named(1)));
  CHECK(!mine.name(offset, named(1, chunk - 1)));
  CHECK(mine.name(offset, named(1)));
  CHECK(!mine.name(offset, named(2)));
}

TEST_CASE("a pool of zero bytes has no room, and no pool has room for more than its size") {
  PinnedChunks none(0), some(chunk);
  CHECK(!PinnedChunks::Hold(none).take(1));
  PinnedChunks::Hold hold(some);
  CHECK(!hold.take(0));
  CHECK(!hold.take(chunk + 1));
  CHECK(!hold.take(~uint64_t{0}));
  CHECK(hold.take(chunk));
}

TEST_CASE("in any order of operations chunks do not overlap, and all room is returned") {
  std::mt19937_64 random(7);
  PinnedChunks chunks(8 * MiB);
  {
    std::vector<std::unique_ptr<PinnedChunks::Hold>> holds;
    std::map<PinnedChunks::Hold*, std::map<uint64_t, uint64_t>> taken;  // offset → end
    for (int step = 0; step < 20000; ++step) {
      if (holds.size() < 4) holds.push_back(std::make_unique<PinnedChunks::Hold>(chunks));
      auto& hold = *holds[random() % holds.size()];
      if (random() % 40 == 0) {
        std::swap(holds[random() % holds.size()], holds.back());
        taken.erase(holds.back().get());
        holds.pop_back();
        continue;
      }
      uint64_t bytes = 1 + random() % (random() % 4 == 0 ? 2 * MiB : 16 * KiB);
      auto offset = hold.take(bytes);
      if (!offset) continue;
      REQUIRE(*offset + bytes <= chunks.bytes());
      for (auto& [owner, all] : taken)
        for (auto [begin, end] : all) REQUIRE((*offset >= end || *offset + bytes <= begin));
      if (random() % 2 == 0) {
        hold.name(*offset, named(random() % 50, bytes));  // the name may exist already, and the room is then released
        continue;
      }
      REQUIRE(hold.name(*offset, named(1000 + static_cast<uint64_t>(step), bytes)));
      taken[&hold][*offset] = *offset + bytes;
    }
  }
  CHECK(chunks.heldBytes() == 0);
  PinnedChunks::Hold all(chunks);
  CHECK(all.take(chunks.bytes()));
}
