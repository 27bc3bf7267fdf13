// A range of memory for copies: the pieces of host views that make up the range.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stub/emulator/memory/address-space.h"

namespace vgpu::emulator::api {

class MemorySpan {
 public:
  MemorySpan() = default;
  // Pageable host memory; the caller guarantees that it is valid.
  static MemorySpan ofHost(const void* pointer, uint64_t bytes);
  // Mapped memory; refuses with CUDA_ERROR_INVALID_VALUE unless all of it is one allocation of the driver's, or physical memory to which
  // one of `devices` has access.
  static MemorySpan ofDevice(const AddressSpace&, uint64_t address, uint64_t bytes, uint64_t devices);
  // One of the two, depending on `address`.
  static MemorySpan ofEither(const AddressSpace&, uint64_t address, uint64_t bytes, uint64_t devices);
  // The range with its present mappings: work that runs later, or again, uses what is mapped at its addresses then. If nothing is mapped
  // any more, the earlier mappings, which the span keeps alive.
  MemorySpan current() const;
  // A copy of the bytes, which the span owns: the content of a pageable source at the time of the call.
  static MemorySpan ofCopy(const MemorySpan& source);

  uint64_t bytes() const { return length; }
  // Host memory that is not known to the driver: it may become invalid after the call.
  bool pageable() const { return isPageable; }
  // Host memory that was registered as read-only for devices.
  bool isReadOnly() const { return onlyRead; }
  // The device whose memory it is; null for host memory, managed memory included.
  Device* device() const { return owner; }
  bool onDevice() const { return owner != nullptr; }
  uint64_t deviceBit() const;  // 0 for host memory

  // Calls each(host, bytes) for the pieces of [offset, offset + bytes), in order.
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
  const AddressSpace* space = nullptr;  // for mapped memory, with its address and the devices that need access
  uint64_t address = 0, devices = 0;
  uint64_t length = 0;
  bool isPageable = false, onlyRead = false;
  Device* owner = nullptr;
};

void copyBytes(const MemorySpan& to, uint64_t toOffset, const MemorySpan& from, uint64_t fromOffset, uint64_t bytes);
// Fills with a value of 1, 2 or 4 bytes; `bytes` is a multiple of that size.
void fillBytes(const MemorySpan& to, uint64_t offset, uint64_t bytes, uint32_t value, unsigned valueBytes);

}  // namespace vgpu::emulator::api
