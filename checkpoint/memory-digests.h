// The digests of device memory that is about to be saved, by the GPUs themselves.
//
// Of what lies in device memory without gaps (stub/worker/kinds/kind.h, address), each whole tile is digested at once; what is left,
// ends of ranges, arrays, and everything on a device that has not the kernel, is digested by the thread that writes it. Of the thread
// that saves.
//
// For the emulated device the host does it: its kernels may not read between allocations, and digest 0.2 GB/s where the host does 4.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoint/chunk-file.h"
#include "stub/worker/session-state.h"

namespace vgpu::checkpoint {

class MemoryDigests {
 public:
  // For items of so many `bytes` in all. Throws kj::Exception if a GPU fails.
  MemoryDigests(stub::SessionState& on, const Digester& digester, uint64_t bytes)
      : on(on), ring(&on.driver, slotsFor(bytes)), digester(digester), tilesAtOnce(ring.whole().size() / sizeof(Digest)) {}

  // Whether a GPU digests such a piece, which begins with a tile of its item, unless it has not the kernel.
  static bool areOnGpu(const stub::Driver& driver, const DevicePiece& piece) {
    return driver.noteAllocation == nullptr && piece.address % 16 == 0 && piece.bytes % tileBytes == 0;
  }

  // The next item of a plan; where it lies, if it does so.
  struct Place {
    unsigned device;
    uint64_t address;
  };
  void add(std::optional<Place> place, uint64_t bytes);
  // After the last.
  void finish() { flush(); }

  // Of a piece of the plan, if it is of whole tiles that a GPU has digested.
  std::optional<Digest> of(const Piece& piece) const;

 private:
  struct Item {
    size_t first = 0, tiles = 0;  // in `digests`
  };
  static size_t slotsFor(uint64_t bytes);
  void digestHere(const Place& place, uint64_t tiles);
  void flush();

  stub::SessionState& on;
  StagingRing ring;  // small: where the digests come
  const Digester& digester;
  const size_t tilesAtOnce;
  std::vector<Item> items;
  std::vector<Digest> digests;  // as far as they have been fetched
  size_t begun = 0;             // on their way to the ring
};

}  // namespace vgpu::checkpoint
