// The device heap of malloc() and free(): first fit over blocks that lie one after the other. All its book-keeping is
// in the heap's own bytes, so it is saved, moved and restored with the memory. All zero bytes are an empty heap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::emulator {

class Heap {
 public:
  Heap(std::byte* memory, uint64_t bytes) : memory(memory), capacity(bytes) {}
  // Offset of `bytes` new bytes, aligned to 16; 0 if there is no room. Any thread may call.
  uint64_t allocate(uint64_t bytes);
  // False if `offset` is not one that allocate() gave and that is still in use.
  bool release(uint64_t offset);

 private:
  // Each block begins with one; `bytes` counts it. A block of 0 bytes is where the unused rest begins.
  struct Header {
    uint64_t bytes;
    uint64_t state;
  };
  Header* at(uint64_t offset) const;
  uint64_t usable() const { return capacity < 2 * sizeof(Header) ? 0 : capacity - sizeof(Header); }

  std::byte* memory;
  uint64_t capacity;
};

}  // namespace vgpu::emulator
