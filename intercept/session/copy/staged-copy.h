// Copies between the program's pageable memory and the GPU, through staging slabs: for copies in one to three dimensions, of
// memory and of arrays. A box is cut into tiles (tiles.h); a tile is packed in a slab, and one frame copies it, however many rows
// it has. Several tiles are pending at once; from a few MiB on, threads share them.
//
// Any thread, outside the gate. The slabs of frames that are pending at a suspend are part of the snapshot.
#pragma once

#include "intercept/session/copy/tiles.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// Rows of memory, in bytes: `pitch` from row to row, `slice` from slice to slice.
struct MemoryRows {
  uint64_t address = 0, pitch = 0, slice = 0;

  uint64_t at(uint64_t x, uint64_t row, uint64_t z) const { return address + z * slice + row * pitch + x; }
  // Whether a box of that size is contiguous there.
  bool isPacked(const BoxSize& size) const {
    return (size.height == 1 || pitch == size.width) && (size.depth == 1 || slice == size.width * size.height);
  }
};

// Where one end of a copy begins: at a place in an array (`x` in bytes), or in memory.
struct BoxEnd {
  uint64_t array = 0;  // virtual handle as the program gave it; 0: memory
  uint64_t x = 0, row = 0, slice = 0;
  MemoryRows memory{};
};

// The program's bytes have been taken when this returns, as CUDA promises for pageable memory. `unit`: bytes of an array's
// element, else 1. `stream` is a resolved handle. CUDA's answer.
CUresult copyFromPageable(Thread& thread, const BoxEnd& destination, const MemoryRows& source, const BoxSize& size,
                          uint64_t unit, uint64_t stream);
// The bytes have arrived when this returns.
CUresult copyToPageable(Thread& thread, const MemoryRows& destination, const BoxEnd& source, const BoxSize& size,
                        uint64_t unit, uint64_t stream);

}  // namespace vgpu::client
