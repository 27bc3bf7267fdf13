// The layout of arrays to which the program maps memory: finds the place of a unit (an element, or a block of elements).
//
// Memory is mapped in tiles of 64 KiB. A level of a sparse array that spans tiles in every dimension is divided into boxes of units, one
// for each tile, x first. Everything else (the tail of small levels, or an array of deferred mapping) is one row of tiles, in which the
// units of its levels follow each other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace vgpu::emulator {

constexpr uint64_t tileBytes = 65536;

// Tiles, with or without memory. Changed by stream work, in stream order.
class TileMemory {
 public:
  explicit TileMemory(uint64_t count) : pieces(count), owners(count) {}
  uint64_t count() const { return pieces.size(); }
  std::byte* at(uint64_t index) const { return pieces[index].load(std::memory_order_acquire); }
  // `owner` keeps the memory alive.
  void set(uint64_t index, std::byte* memory, std::shared_ptr<const void> owner) {
    pieces[index].store(memory, std::memory_order_release);
    owners[index] = std::move(owner);
  }

 private:
  std::vector<std::atomic<std::byte*>> pieces;
  std::vector<std::shared_ptr<const void>> owners;
};

struct TileLayout {
  std::shared_ptr<TileMemory> memory;
  uint64_t unitBytes = 1;
  std::array<uint64_t, 3> units{1, 1, 1};  // units of the level: x, y, and slices or layers
  std::array<uint64_t, 3> tile{};          // in units; 0: one row of tiles
  uint64_t start = 0;                      // in that case: bytes before this level
  uint64_t layerTiles = 0;                 // and number of tiles from one layer to the next; 0: slices follow each other
  bool readsZeros = true;                  // reads without memory return zeros; otherwise they fault

  // The unit at a position, or nullptr; and the number of bytes from there on that are contiguous in the row.
  struct Run {
    std::byte* at;
    uint64_t bytes;
  };
  Run runAt(uint64_t x, uint64_t y, uint64_t z) const {
    if (tile[0] != 0) {
      const auto count = [&](int axis) { return (units[axis] + tile[axis] - 1) / tile[axis]; };
      const uint64_t index = (z / tile[2] * count(1) + y / tile[1]) * count(0) + x / tile[0];
      const uint64_t within = (z % tile[2] * tile[1] + y % tile[1]) * tile[0] + x % tile[0];
      std::byte* const from = memory->at(index);
      return {from ? from + within * unitBytes : nullptr, (tile[0] - x % tile[0]) * unitBytes};
    }
    const uint64_t slice = layerTiles != 0 ? 0 : z;
    const uint64_t at = start + ((slice * units[1] + y) * units[0] + x) * unitBytes;
    std::byte* const from = memory->at(z * layerTiles + at / tileBytes);
    return {from ? from + at % tileBytes : nullptr, tileBytes - at % tileBytes};
  }
};

}  // namespace vgpu::emulator
