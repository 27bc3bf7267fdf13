// Cuts a box of bytes into tiles that fit a staging slab. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vgpu::client {

struct BoxSize {
  uint64_t width, height, depth;  // bytes, rows, slices

  bool operator==(const BoxSize&) const = default;
  bool isRow() const { return height == 1 && depth == 1; }
  uint64_t bytes() const { return isRow() ? width : width * height * depth; }
};

// A part of a box that starts `x` bytes, `row` rows and `slice` slices from the box's start.
struct Tile {
  uint64_t x, row, slice;
  BoxSize size;
};

// Tiles in the order of the box's bytes: whole slices if they fit, else whole rows, else parts of a row.
class Tiling {
 public:
  // No side of `box` is 0, and its size in bytes fits 64 bits. A tile has at most `capacity` bytes. A row is cut only between elements of
  // `unit` bytes, of which a tile holds at least one.
  Tiling(const BoxSize& box, uint64_t unit, uint64_t capacity) : box(box), tile{1, 1, 1} {
    tile.width = std::min(box.width, capacity / unit * unit);
    if (tile.width == box.width) tile.height = std::clamp<uint64_t>(capacity / tile.width, 1, box.height);
    if (tile.width == box.width && tile.height == box.height)
      tile.depth = std::clamp<uint64_t>(capacity / (tile.width * tile.height), 1, box.depth);
    across = parts(box.width, tile.width);
    down = parts(box.height, tile.height);
  }

  uint64_t count() const { return across * down * parts(box.depth, tile.depth); }

  // The tile with that index, which is less than count().
  Tile operator[](uint64_t index) const {
    uint64_t x = index % across * tile.width, row = index / across % down * tile.height;
    uint64_t slice = index / across / down * tile.depth;
    return {x, row, slice,
            {std::min(tile.width, box.width - x), std::min(tile.height, box.height - row),
             std::min(tile.depth, box.depth - slice)}};
  }

 private:
  static uint64_t parts(uint64_t whole, uint64_t part) { return (whole + part - 1) / part; }

  BoxSize box, tile;  // `tile`: the size of all but the last tile in each direction
  uint64_t across, down;
};

}  // namespace vgpu::client
