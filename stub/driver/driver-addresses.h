// Where the driver's library gets addresses: the worker decides, because a program knows where variables of its modules lie, and
// they must lie there again in the worker in which the session goes on.
//
// Observed with driver 580.159: it takes addresses with mmap(), in blocks of a multiple of 32 MiB, and hands out pieces of 2 MiB
// of them for whatever needs device memory: variables of modules, streams, what kernels print. A block begins at a multiple of
// 32 MiB, so the driver asks for 32 MiB more, and unmaps what it does not need. Blocks that a module's loading needs are placed
// in a range of their own, at places that can be named when it is loaded again (BlockPlacement); whatever else it maps, in
// another. To have a module's variables in a block that its own loading has made, all other blocks must be full (gap-filler.h).
//
// The real driver asks through the worker's own mmap() (tools/worker/driver-mappings-unsafe.cc), the emulated one through a
// function that Driver::load gives it. Any thread may call; one mutex, held within a call alone. Nothing of it survives a
// suspend: a snapshot keeps the blocks that a module's loading has made (stub/worker/module-groups.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "stub/driver/address-ranges.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

constexpr uint64_t driverBlockBytes = 32 * MiB;
constexpr uint64_t moduleBlocksBase = 0x5000'0000'0000, moduleBlocksBytes = 4 * TiB;
constexpr bool inModuleBlocks(uint64_t address) {
  return address >= moduleBlocksBase && address < moduleBlocksBase + moduleBlocksBytes;
}

// A block as the driver has asked for it.
struct DriverBlock {
  uint64_t address = 0, bytes = 0;
  bool operator==(const DriverBlock&) const = default;
};

// While it exists, blocks that the driver maps on this thread are placed where modules are. One at a time on a thread.
class BlockPlacement {
 public:
  // At the lowest free places.
  BlockPlacement();
  // Where they were: each request gets the first place of `wanted` of that size that no other has got; one for which there is
  // none was not made at that time, and gets a place among the driver's other blocks.
  explicit BlockPlacement(std::vector<DriverBlock> wanted);
  ~BlockPlacement();
  BlockPlacement(const BlockPlacement&) = delete;
  BlockPlacement& operator=(const BlockPlacement&) = delete;

  // Those that lie where modules are, in the order in which they were made.
  const std::vector<DriverBlock>& blocks() const { return made; }

 private:
  friend class DriverAddresses;
  bool named = false;
  std::vector<DriverBlock> wanted, made;
};

class DriverAddresses {
 public:
  // Of this process, which has one driver.
  static DriverAddresses& ofProcess();

  // A place for a block, or for another mapping, of `bytes`; 0 if there is none.
  uint64_t take(uint64_t bytes);
  // The same for a block that lies where modules are; 0 if this thread places none, or not this one.
  uint64_t takeForModules(uint64_t bytes);
  // Whatever of [address, address + bytes) was taken is free again.
  void give(uint64_t address, uint64_t bytes);
  bool contains(uint64_t address) const;
  // How many bytes the driver has taken.
  uint64_t takenBytes();

  // The driver has mapped something at a place of its own choice.
  void noteMapping();
  // How many times this thread has called one of the three.
  static uint64_t mappings();
  // Whether the driver asks here at all. Not if it is the real one and nobody intercepts its mappings.
  bool areAsked() const { return asked.load(std::memory_order_relaxed); }
  void noteAsked() { asked.store(true, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t othersBase = deviceArenaBase + maxDevices * deviceArenaBytes, othersBytes = 16 * TiB;
  uint64_t place(BlockPlacement& placement, uint64_t bytes);

  std::mutex mutex;
  AddressRanges others{othersBase, othersBytes};
  AddressRanges modules{moduleBlocksBase, moduleBlocksBytes};
  std::atomic<bool> asked{false};
};

}  // namespace vgpu::stub
