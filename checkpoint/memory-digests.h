// Digests of device memory that is about to be saved, computed by the GPUs.
//
// For memory that is contiguous on a device (stub/worker/kinds/kind.h, address), all whole tiles are digested at once; the rest (ends of
// ranges, arrays, and everything on a device that lacks the kernel) is digested by the thread that writes it. Used by the thread that
// saves.
//
// For the emulated device the host digests: emulated kernels may not read between allocations, and digest 0.2 GB/s where the host does 4.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoint/chunk-file.h"
#include "stub/worker/session-state.h"

namespace vgpu::checkpoint {

class MemoryDigests {
 public:
  // For items of `bytes` in total. Throws kj::Exception if a GPU fails.
  MemoryDigests(stub::SessionState& on, const Digester& digester, uint64_t bytes)
      : on(on), ring(&on.driver, slotsFor(bytes)), digester(digester), tilesAtOnce(ring.whole().size() / sizeof(Digest)) {}

  // Whether a GPU digests such a piece, which begins at a tile of its item, provided that the device has the kernel.
  static bool areOnGpu(const stub::Driver& driver, const DevicePiece& piece) {
    return driver.noteAllocation == nullptr && piece.address % 16 == 0 && piece.bytes % tileBytes == 0;
  }

  // Where the next item of a plan lies, if it is contiguous on a device.
  struct Place {
    unsigned device;
    uint64_t address;
  };
  void add(std::optional<Place> place, uint64_t bytes);
  // Call it after the last item.
  void finish() { flush(); }

  // The digest of a piece of the plan, if it consists of whole tiles that a GPU has digested.
  std::optional<Digest> of(const Piece& piece) const;

 private:
  struct Item {
    size_t first = 0, tiles = 0;  // indexes in `digests`
  };
  static size_t slotsFor(uint64_t bytes);
  void digestHere(const Place& place, uint64_t tiles);
  void flush();

  stub::SessionState& on;
  StagingRing ring;  // small: receives the digests
  const Digester& digester;
  const size_t tilesAtOnce;
  std::vector<Item> items;
  std::vector<Digest> digests;  // those fetched so far
  size_t begun = 0;             // being copied to the ring
};

}  // namespace vgpu::checkpoint
