#include "stub/emulator/ptx/run/heap.h"

#include <mutex>

namespace vgpu::emulator {
namespace {

constexpr uint64_t usedMark = 0x75736564;  // a header with another value has been overwritten by the program

std::mutex& heapMutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Heap::Header* Heap::at(uint64_t offset) const { return static_cast<Header*>(static_cast<void*>(memory + offset)); }

uint64_t Heap::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > capacity) return 0;
  const uint64_t wanted = (bytes + sizeof(Header) + 15) / 16 * 16;
  const std::lock_guard lock(heapMutex());
  for (uint64_t offset = 0; offset + wanted <= usable();) {
    Header* block = at(offset);
    const uint64_t size = block->bytes;
    if (size == 0) {
      *block = {wanted, usedMark};
      *at(offset + wanted) = {0, 0};
      return offset + sizeof(Header);
    }
    if (size % 16 || size > usable() - offset) return 0;
    if (block->state == 0 && size >= wanted) {
      if (size - wanted >= 2 * sizeof(Header)) {
        *at(offset + wanted) = {size - wanted, 0};
        block->bytes = wanted;
      }
      block->state = usedMark;
      return offset + sizeof(Header);
    }
    // A free block is merged with a free one after it.
    Header* following = at(offset + size);
    if (block->state == 0 && following->bytes && following->bytes % 16 == 0 && following->state == 0 &&
        following->bytes <= usable() - offset - size) {
      block->bytes += following->bytes;
      continue;
    }
    offset += size;
  }
  return 0;
}

bool Heap::release(uint64_t offset) {
  if (offset < sizeof(Header) || offset % 16 || offset >= usable()) return false;
  const std::lock_guard lock(heapMutex());
  Header* block = at(offset - sizeof(Header));
  if (block->state != usedMark) return false;
  block->state = 0;
  return true;
}

}  // namespace vgpu::emulator
