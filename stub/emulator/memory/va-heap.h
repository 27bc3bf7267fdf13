// Addresses as hardware's driver hands them out (observed on an H100, driver 580.159): it takes them from the system in blocks of
// a multiple of 32 MiB, and hands out pieces of 2 MiB of them for whatever needs some: at the beginning of the smallest gap that
// is large enough, of several the lowest; if there is none, at the beginning of a new block. A block goes with its last piece.
//
// Blocks lie at the lowest free place of a range, or where the process that uses the driver says: vgpuEmulatorPlaceBlocks() does
// for it what defining mmap() does with the real one. Any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "stub/emulator/memory/va-range.h"

namespace vgpu::emulator::api {

// Who places blocks: an address for one of so many bytes, 0 for none; and that one is gone.
struct BlockPlacer {
  uint64_t (*place)(uint64_t bytes) = nullptr;
  void (*release)(uint64_t address, uint64_t bytes) = nullptr;
};
void placeBlocks(BlockPlacer placer);  // of this process, from now on

class VaHeap final : public AddressSource {
 public:
  VaHeap(uint64_t base, uint64_t bytes) : range(base, bytes) {}

  std::optional<uint64_t> take(uint64_t bytes, uint64_t alignment) override;
  void give(uint64_t base) override;

 private:
  static constexpr uint64_t blockBytes = uint64_t{32} << 20, pieceBytes = uint64_t{2} << 20;
  struct Block {
    uint64_t bytes;
    bool foreign;  // placed by a BlockPlacer
  };
  using Spans = std::map<uint64_t, uint64_t>;  // address to bytes
  std::optional<uint64_t> addBlock(uint64_t bytes);
  Spans::iterator findGap(uint64_t bytes, uint64_t alignment);
  void addGap(uint64_t base, uint64_t bytes);

  VaRange range;
  std::mutex mutex;
  std::map<uint64_t, Block> blocks;
  Spans gaps, taken;
};

}  // namespace vgpu::emulator::api
