// A range of memory as the copy engine sees it: pieces of host views that together make the range.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stub/emulator/memory/address-space.h"

namespace vgpu::emulator::api {

class MemorySpan {
 public:
  MemorySpan() = default;
  // Pageable host memory, which the caller vouches for.
  static MemorySpan ofHost(const void* pointer, uint64_t bytes);
  // Mapped memory; refuses with CUDA_ERROR_INVALID_VALUE if not all of it is one allocation of the driver's, or physical
  // memory to which none of `devices` has been given access.
  static MemorySpan ofDevice(const AddressSpace&, uint64_t address, uint64_t bytes, uint64_t devices);
  // Whichever of the two `address` is.
  static MemorySpan ofEither(const AddressSpace&, uint64_t address, uint64_t bytes, uint64_t devices);
  // The range as it is now: work that runs later, or again, uses what is mapped at its addresses then. Where nothing is any more,
  // what has been there, which the span keeps.
  MemorySpan current() const;
  // Bytes of its own, which the span keeps: what a pageable source held when the copy was asked for.
  static MemorySpan ofCopy(const MemorySpan& source);

  uint64_t bytes() const { return length; }
  // Host memory that the driver does not know: copies from and to it cannot outlive the call.
  bool pageable() const { return isPageable; }
  // Host memory that was registered so that devices only read it.
  bool isReadOnly() const { return onlyRead; }
  // The device whose memory it is; null for host memory, managed memory included.
  Device* device() const { return owner; }
  bool onDevice() const { return owner != nullptr; }
  uint64_t deviceBit() const;  // 0 for host memory

  // Calls each(host, part) for the pieces of [offset, offset + bytes), in order.
  template <class Each>
  void forEach(uint64_t offset, uint64_t bytes, Each each) const {
    for (const Piece& piece : pieces) {
      if (offset >= piece.bytes) {
        offset -= piece.bytes;
        continue;
      }
      uint64_t part = std::min(bytes, piece.bytes - offset);
      each(piece.host + offset, part);
      bytes -= part;
      offset = 0;
      if (bytes == 0) return;
    }
  }

 private:
  std::vector<Piece> pieces;
  const AddressSpace* space = nullptr;  // of mapped memory, with its address and who needs access
  uint64_t address = 0, devices = 0;
  uint64_t length = 0;
  bool isPageable = false, onlyRead = false;
  Device* owner = nullptr;
};

void copyBytes(const MemorySpan& to, uint64_t toOffset, const MemorySpan& from, uint64_t fromOffset, uint64_t bytes);
// Fills with a value of 1, 2 or 4 bytes; `bytes` is a multiple of it.
void fillBytes(const MemorySpan& to, uint64_t offset, uint64_t bytes, uint32_t value, unsigned valueBytes);

}  // namespace vgpu::emulator::api
