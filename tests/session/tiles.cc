#include "intercept/session/copy/tiles.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <vector>

using namespace vgpu;
using namespace vgpu::client;

namespace {

// Adds 1 to every byte of `box` that a tile covers; checks that no tile is too large or splits an element.
std::vector<int> covered(const BoxSize& box, uint64_t unit, uint64_t capacity) {
  std::vector<int> count(box.bytes(), 0);
  Tiling tiles(box, unit, capacity);
  for (uint64_t i = 0; i < tiles.count(); ++i) {
    Tile tile = tiles[i];
    CHECK(tile.size.bytes() <= capacity);
    CHECK(tile.x % unit == 0);
    CHECK(tile.size.width % unit == 0);
    for (uint64_t z = 0; z < tile.size.depth; ++z)
      for (uint64_t y = 0; y < tile.size.height; ++y)
        for (uint64_t x = 0; x < tile.size.width; ++x)
          ++count[((tile.slice + z) * box.height + tile.row + y) * box.width + tile.x + x];
  }
  return count;
}

uint64_t tilesOf(const BoxSize& box, uint64_t capacity) { return Tiling(box, 1, capacity).count(); }

}  // namespace

TEST_CASE("every byte of a box is in exactly one tile") {
  for (uint64_t width : {4, 12, 60, 64, 68})
    for (uint64_t height : {1, 2, 5, 16, 17})
      for (uint64_t depth : {1, 2, 7})
        for (uint64_t unit : {1, 4})
          for (uint64_t capacity : {4, 13, 64, 100, 5000}) {
            BoxSize box{width, height, depth};
            CHECK(covered(box, unit, capacity) == std::vector<int>(box.bytes(), 1));
          }
}

TEST_CASE("a box that fits into a slab is one tile, however many rows and slices it has") {
  CHECK(tilesOf({256, 4096, 1}, 1 << 20) == 1);
  CHECK(tilesOf({4, 4, 65536}, 1 << 20) == 1);
  CHECK(tilesOf({1 << 20, 1, 1}, 1 << 20) == 1);
}

TEST_CASE("a larger box has hardly more tiles than its size requires") {
  CHECK(tilesOf({256, 4097, 1}, 1 << 20) == 2);
  CHECK(tilesOf({(1 << 20) + 1, 3, 1}, 1 << 20) == 6);
  CHECK(tilesOf({4, 4, 65537}, 1 << 20) == 2);
  CHECK(tilesOf({300'000, 7, 2}, 1 << 20) == 6);  // three rows per tile
}

TEST_CASE("a box of one row is split at any byte") {
  Tiling tiles({10 * 100 + 1, 1, 1}, 1, 100);
  CHECK(tiles.count() == 11);
  CHECK(tiles[3].x == 300);
  CHECK(tiles[3].size.bytes() == 100);
  CHECK(tiles[10].size.bytes() == 1);
}
