// The device heap of malloc() and free(): first fit over adjacent blocks. All its book-keeping lies inside the heap, so it is saved, moved
// and restored with the memory. All zeros are an empty heap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::emulator {

class Heap {
 public:
  Heap(std::byte* memory, uint64_t bytes) : memory(memory), capacity(bytes) {}
  // Offset of `bytes` new bytes, aligned to 16; 0 if there is no room. Any thread may call.
  uint64_t allocate(uint64_t bytes);
  // False if `offset` was not returned by allocate() or is no longer in use.
  bool release(uint64_t offset);

 private:
  // The beginning of each block; `bytes` includes it. A block of 0 bytes marks the beginning of the unused rest.
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
