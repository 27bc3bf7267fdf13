// Pinned memory that a program in a virtual machine shares with its worker: pieces of the memory that the machine shares with its host
// (vgpu/wire/guest-file.h), mapped at addresses of the host arena (docs/virtual-machines.md).
//
// Any thread; `mutex` is a leaf lock. Survives a suspend: the next worker maps the same pieces.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "vgpu/base/memory-file.h"
#include "vgpu/wire/guest-file.h"

namespace vgpu::client {

class GuestPieces {
 public:
  // `segment`: the session's. There are pieces only if the segment lies in a machine's shared memory.
  explicit GuestPieces(const MemoryFile& segment);
  ~GuestPieces();
  GuestPieces(const GuestPieces&) = delete;
  GuestPieces& operator=(const GuestPieces&) = delete;

  // Whether a piece of that size could exist if nothing else used the memory.
  bool canBe(uint64_t bytes = 0) const { return memoryBytes != 0 && bytes <= GuestLayout::pieces(memoryBytes).bytes; }
  // Maps `bytes` (whole granules) of the machine's memory at `address`: the highest range that ends at or below `below` and that no program
  // of the machine holds. Returns its place; nothing if there is none. The host may still consider the range in use.
  std::optional<uint64_t> take(uint64_t address, uint64_t bytes, uint64_t below = UINT64_MAX);
  // Unmaps what take() has mapped at `address`, if anything. The worker must have unmapped it before.
  void drop(uint64_t address);
  // Whether `address` lies in a piece.
  bool hold(uint64_t address) const;

 private:
  std::optional<GuestLocks::Range> findFree(uint64_t bytes, uint64_t below) const;

  const MemoryFile& segment;
  const GuestLocks locks;
  const uint64_t memoryBytes;  // all that the machine shares; 0: the session is in no machine
  mutable std::mutex mutex;
  std::map<uint64_t, GuestLocks::Range> pieces;  // by address
};

}  // namespace vgpu::client
