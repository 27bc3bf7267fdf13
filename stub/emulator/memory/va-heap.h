// Assigns addresses as the hardware's driver does (observed on an H100, driver 580.159): it takes blocks of a multiple of 32 MiB from the
// system, and divides them into pieces of 2 MiB. A piece is placed at the beginning of the smallest gap that is large enough, the lowest
// among equal ones; if there is none, at the beginning of a new block. A block is freed with its last piece.
//
// A block has the lowest free address of a range, or the one that the process chooses: vgpuEmulatorPlaceBlocks() corresponds to a process
// that defines mmap() for the real driver. Any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "stub/emulator/memory/va-range.h"

namespace vgpu::emulator::api {

// Places blocks. place: returns the address for a block of so many bytes, 0 for no choice; release: a block that it has placed is freed.
struct BlockPlacer {
  uint64_t (*place)(uint64_t bytes) = nullptr;
  void (*release)(uint64_t address, uint64_t bytes) = nullptr;
};
void placeBlocks(BlockPlacer placer);  // for this process, from now on

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
