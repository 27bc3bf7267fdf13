// One end of a copy encoded as a number; and where a tile of a box begins at that end.
#include "intercept/session/copy/copy-end.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace vgpu;
using namespace vgpu::client;
using api::Place;
using api::PlaceType;

TEST_CASE("a place encodes its type, and an invalid number is no place") {
  constexpr uint64_t array = makeHandle(api::Kind::ARRAY, 3, 0xabcdef, 0x123456), stream = makeHandle(api::Kind::STREAM, 0, 0, 1);
  CHECK(Place().type() == PlaceType::CALL);
  CHECK(Place().number() == 0);
  CHECK(Place::address(0x2000'0000'0000).type() == PlaceType::ADDRESS);
  CHECK(Place::address(0x2000'0000'0000).value() == 0x2000'0000'0000);
  CHECK(Place::address(~uint64_t{0} >> 12).type() == PlaceType::ADDRESS);
  CHECK(Place::array(array).type() == PlaceType::ARRAY);
  CHECK(Place::array(array).value() == array);
  for (uint32_t slab : {0u, 63u, ~0u}) {
    CHECK(Place::slab(slab).type() == PlaceType::SLAB);
    CHECK(Place::slab(slab).value() == slab);
  }
  for (uint64_t none : {uint64_t{1} << 52, stream, uint64_t{1} << 61, ~uint64_t{0}}) CHECK(Place(none).type() == PlaceType::NONE);
}

TEST_CASE("an address from a program is never taken for another type of place, nor another object for an array") {
  for (uint64_t address : {uint64_t{1} << 52, makeHandle(api::Kind::ARRAY, 0, 0, 1), uint64_t{1} << 60, ~uint64_t{0}})
    CHECK(Place::address(address).type() == PlaceType::NONE);
  Place other = Place::array(makeHandle(api::Kind::STREAM, 0, 0, 1)), low = Place::array(0x2000'0000'0000);
  CHECK(other == low);
  CHECK(other.type() == PlaceType::ARRAY);  // no session has this handle: its lookup fails as for a destroyed one
  CHECK(handleIndex(other.value()) == 0xffffff);
}

TEST_CASE("the beginning of a tile is computed in memory and in an array") {
  const Tile tile{8, 2, 3, {16, 4, 1}};
  CopyEnd memory = CopyEnd::memory(0x10000, 100, 1000).at(tile);
  CHECK(memory.address() == 0x10000 + 3 * 1000 + 2 * 100 + 8);
  CHECK(memory.pitch == 100);
  CopyEnd array = CopyEnd::array(makeHandle(api::Kind::ARRAY, 0, 0, 1), 1, 10, 20).at(tile);
  CHECK(array.x == 9);
  CHECK(array.row == 12);
  CHECK(array.z == 23);
}

TEST_CASE("a box is visited in runs without gaps, in the order of its bytes") {
  auto runsOf = [](const CopyEnd& end, const BoxSize& size) {
    std::vector<std::string> runs;
    forRuns(end, size, [&](std::byte* memory, uint64_t offset, uint64_t bytes) {
      runs.push_back(std::to_string(toWire(memory)) + " " + std::to_string(offset) + " " + std::to_string(bytes));
    });
    return runs;
  };
  using Runs = std::vector<std::string>;
  CHECK(runsOf(CopyEnd::memory(1000), {7, 1, 1}) == Runs{"1000 0 7"});
  CHECK(runsOf(CopyEnd::memory(1000, 10, 20), {10, 2, 2}) == Runs{"1000 0 40"});
  CHECK(runsOf(CopyEnd::memory(1000, 10, 30), {10, 2, 2}) == Runs{"1000 0 20", "1030 20 20"});
  CHECK(runsOf(CopyEnd::memory(1000, 12, 30), {10, 2, 2}) == Runs{"1000 0 10", "1012 10 10", "1030 20 10", "1042 30 10"});
}
