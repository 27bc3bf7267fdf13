// CUDA arrays: memory of one to three dimensions, layers and faces, whose layout is the device's own. Here it is rows of units (an
// element, or a block of a compressed format), a whole number of bytes apart, slice after slice; or tiles, where the program puts them
// (tile-layout.h).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "stub/emulator/memory/array-format.h"
#include "stub/emulator/memory/span.h"

namespace vgpu::emulator::api {

// Bytes of one element: the format's size times the channels; 0 for a format that memory cannot be read as.
unsigned elementBytes(CUarray_format format, unsigned channels);

// What there is of a sparse array's, or a whole mipmapped one's, tiles (cuda.h, CUDA_ARRAY_SPARSE_PROPERTIES). In elements.
struct Tiling {
  std::array<uint64_t, 3> tile{};         // 0: of deferred mapping
  std::shared_ptr<TileMemory> tail;       // of the levels that do not span a tile, or of all; layer after layer
  uint64_t layers = 1, tailTiles = 0;     // of one layer
  unsigned firstTailLevel = 0;
  bool isSingleTail = false;
  std::vector<std::shared_ptr<TileLayout>> levels;
  // Host order: memory has been mapped to all of it, or will be before what is submitted from now on.
  std::atomic<bool> hasMemory{false};
};

struct Array {
  // `part`: a level of a mipmapped array, or a plane, which cannot be destroyed by itself; `tiling` is then the whole's.
  Array(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::shared_ptr<Tiling> tiling = nullptr, unsigned level = 0);
  ~Array();
  Array(const Array&) = delete;

  Context& context;
  CUarray handle = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const ArrayFormat* format;
  uint64_t element = 0, rowBytes = 0, rows = 0, slices = 0;  // of units; rows a slice, slices with layers and faces
  uint64_t address = 0;
  std::shared_ptr<Tiling> tiling;
  std::shared_ptr<const TileLayout> tiles;
  std::vector<std::shared_ptr<Array>> planes;  // then it has no bytes of its own
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

// For a sparse array, or one of deferred mapping, of these levels; nullptr for others (tiles.cc).
std::shared_ptr<Tiling> tilingOf(const std::vector<CUDA_ARRAY3D_DESCRIPTOR>& levels);

}  // namespace vgpu::emulator::api
