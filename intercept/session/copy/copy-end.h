// One end of a copy on the program's side: what it names, and where the copied box starts there. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "intercept/session/copy/tiles.h"
#include "vgpu/api/place.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

struct CopyEnd {
  api::Place place;                 // an address (also of pageable memory) or an array; in a frame also a slab, or the call itself
  uint64_t pitch = 0, slice = 0;    // memory: bytes from row to row and from slice to slice
  uint64_t x = 0, row = 0, z = 0;   // an array: the box's position in it; x in bytes

  static CopyEnd memory(uint64_t address, uint64_t pitch = 0, uint64_t slice = 0) {
    return {api::Place::address(address), pitch, slice};
  }
  static CopyEnd array(uint64_t handle, uint64_t x, uint64_t row = 0, uint64_t z = 0) {
    return {.place = api::Place::array(handle), .x = x, .row = row, .z = z};
  }
  static CopyEnd slab(uint32_t slab) { return {api::Place::slab(slab)}; }
  static CopyEnd ofCall() { return {}; }

  bool operator==(const CopyEnd&) const = default;
  bool isArray() const { return place.isArray(); }
  // For memory: the box's start, and an address inside the box.
  uint64_t address() const { return place.number(); }
  uint64_t addressOf(uint64_t inRow, uint64_t inSlice, uint64_t inBox) const {
    return address() + inBox * slice + inSlice * pitch + inRow;
  }

  // Whether the bytes of a box of that size are contiguous there; in a slab and in the call they always are.
  bool isPacked(const BoxSize& size) const {
    if (isArray()) return false;
    if (size.isRow() || place.type() != api::PlaceType::ADDRESS) return true;
    return (size.height == 1 || pitch == size.width) && (size.depth == 1 || slice == size.width * size.height);
  }
  // The start of a tile of the box; for memory or an array.
  CopyEnd at(const Tile& tile) const {
    if (isArray()) return {place, 0, 0, x + tile.x, row + tile.row, z + tile.slice};
    return memory(addressOf(tile.x, tile.row, tile.slice), pitch, slice);
  }
};

// Sets the fields of a copy frame for a box in memory, except the width: height and depth, and the pitches at both ends.
template <typename Frame>
void setBoxInMemory(Frame& frame, const CopyEnd& to, const CopyEnd& from, const BoxSize& size) {
  frame->setHeight(size.height);
  frame->setDepth(size.depth);
  frame->setToPitch(to.pitch);
  frame->setToSlice(to.slice);
  frame->setFromPitch(from.pitch);
  frame->setFromSlice(from.slice);
}

// The same for a box of which an end may be an array.
template <typename Frame>
void setBox(Frame& frame, const CopyEnd& to, const CopyEnd& from, const BoxSize& size) {
  setBoxInMemory(frame, to, from, size);
  frame->setToX(to.x);
  frame->setToRow(to.row);
  frame->setToZ(to.z);
  frame->setFromX(from.x);
  frame->setFromRow(from.row);
  frame->setFromZ(from.z);
}

// Calls `visit(address, offset among the packed bytes, bytes)` for each contiguous run of a box in memory.
template <typename Visit>
void forRuns(const CopyEnd& memory, const BoxSize& size, Visit visit) {
  auto& [width, height, depth] = size;
  auto pointer = [&](uint64_t row, uint64_t z) { return fromWire<std::byte*>(memory.addressOf(0, row, z)); };
  if (memory.isPacked(size)) return visit(pointer(0, 0), uint64_t{0}, size.bytes());
  bool rowsJoin = height == 1 || memory.pitch == width;
  uint64_t run = rowsJoin ? width * height : width, rows = rowsJoin ? 1 : height, offset = 0;
  for (uint64_t z = 0; z < depth; ++z)
    for (uint64_t row = 0; row < rows; ++row, offset += run) visit(pointer(row, z), offset, run);
}

}  // namespace vgpu::client
