// Pinned memory of a program in a virtual machine that is one memory with its worker's: pieces of what the machine shares with
// its host (vgpu/wire/guest-file.h), mapped at addresses of the host arena (docs/virtual-machines.md).
//
// Any thread: `mutex` is a leaf. Stays over a suspend: the next worker maps the same pieces.
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
  // `segment`: of the session. There are no pieces unless that is one of a machine's memory.
  explicit GuestPieces(const MemoryFile& segment);
  ~GuestPieces();
  GuestPieces(const GuestPieces&) = delete;
  GuestPieces& operator=(const GuestPieces&) = delete;

  // Of so many bytes, if all that can be pieces were free.
  bool canBe(uint64_t bytes = 0) const { return memoryBytes != 0 && bytes <= GuestLayout::pieces(memoryBytes).bytes; }
  // Maps `bytes` (whole granules) of the machine's memory at `address`: those that end highest, and not above `below`, of which
  // no program of the machine has any. Returns their place; nothing if there is none. The host may know somebody who has them.
  std::optional<uint64_t> take(uint64_t address, uint64_t bytes, uint64_t below = UINT64_MAX);
  // Lets go of what take() has mapped at `address`, if anything is. The worker does not have it any more.
  void drop(uint64_t address);
  // Whether `address` is in a piece.
  bool hold(uint64_t address) const;

 private:
  std::optional<GuestLocks::Range> findFree(uint64_t bytes, uint64_t below) const;

  const MemoryFile& segment;
  const GuestLocks locks;
  const uint64_t memoryBytes;  // of all that the machine shares; 0: nothing
  mutable std::mutex mutex;
  std::map<uint64_t, GuestLocks::Range> pieces;  // by address
};

}  // namespace vgpu::client
