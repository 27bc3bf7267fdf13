// CUDA arrays: memory of one to three dimensions, layers and faces, whose layout is private to the device. Here an array consists of rows
// of units (an element, or a block of a compressed format), with a whole number of bytes between rows, slice after slice; or of tiles, to
// which the program maps memory (tile-layout.h).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "stub/emulator/memory/array-format.h"
#include "stub/emulator/memory/span.h"

namespace vgpu::emulator::api {

// Bytes of one element: the format's size times the channels; 0 for formats that linear memory cannot have.
unsigned elementBytes(CUarray_format format, unsigned channels);

// The tiles of a sparse array, or of a whole mipmapped one (cuda.h, CUDA_ARRAY_SPARSE_PROPERTIES). In elements.
struct Tiling {
  std::array<uint64_t, 3> tile{};         // 0: deferred mapping
  std::shared_ptr<TileMemory> tail;       // memory of the levels smaller than a tile, or of all levels; layer after layer
  uint64_t layers = 1, tailTiles = 0;     // tailTiles: of one layer
  unsigned firstTailLevel = 0;
  bool isSingleTail = false;
  std::vector<std::shared_ptr<TileLayout>> levels;
  // Whether memory is mapped to all of it, or will be before any work submitted from now on.
  std::atomic<bool> hasMemory{false};
};

struct Array {
  // `part`: a level of a mipmapped array, or a plane, which cannot be destroyed by itself; `tiling` then belongs to the whole.
  Array(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::shared_ptr<Tiling> tiling = nullptr, unsigned level = 0);
  ~Array();
  Array(const Array&) = delete;

  Context& context;
  CUarray handle = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const ArrayFormat* format;
  uint64_t element = 0, rowBytes = 0, rows = 0, slices = 0;  // in units; rows of a slice, slices including layers and faces
  uint64_t address = 0;
  std::shared_ptr<Tiling> tiling;
  std::shared_ptr<const TileLayout> tiles;
  std::vector<std::shared_ptr<Array>> planes;  // if there are any, the array has no bytes of its own
  bool isPart = false;
  uint64_t bytes() const { return rowBytes * rows * slices; }
};

struct MipmappedArray {
  MipmappedArray(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels);
  Context& context;
  CUmipmappedArray handle = nullptr;
  std::shared_ptr<Tiling> tiling;
  std::vector<std::shared_ptr<Array>> levels;
};

// The tiling for a sparse array, or one of deferred mapping, with these levels; nullptr for other arrays (tiles.cc).
std::shared_ptr<Tiling> tilingOf(const std::vector<CUDA_ARRAY3D_DESCRIPTOR>& levels);

}  // namespace vgpu::emulator::api
