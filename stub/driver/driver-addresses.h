// Addresses for the driver's library: the worker chooses them, because a program knows the addresses of its modules' variables, and the
// variables must lie there again in the worker in which the session is resumed.
//
// Observed with driver 580.159: it gets addresses with mmap(), in blocks of a multiple of 32 MiB, and divides them into pieces of 2 MiB for
// everything that needs device memory: variables of modules, streams, printf buffers. A block starts at a multiple of 32 MiB, so the driver
// asks for 32 MiB more than it needs and unmaps the rest. Blocks that loading a module needs are placed in a range of their own, at
// addresses that can be requested again at the next load (BlockPlacement); all other mappings in another range. A module's variables lie in
// a block of its own load only if all other blocks are full then (gap-filler.h).
//
// The real driver gets here through the worker's own mmap() (tools/worker/driver-mappings-unsafe.cc), the emulated one through a function
// that Driver::load gives it. Any thread may call; one mutex, held only within a call. Nothing of it survives a suspend: a snapshot keeps
// the blocks that a module's load has made (stub/worker/module-groups.h).
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

// A block as the driver has requested it.
struct DriverBlock {
  uint64_t address = 0, bytes = 0;
  bool operator==(const DriverBlock&) const = default;
};

// While it exists, blocks that the driver maps on this thread are placed in the range for modules. One at a time for each thread.
class BlockPlacement {
 public:
  // At the lowest free addresses.
  BlockPlacement();
  // At given addresses: each request gets the first block in `wanted` of that size that is not used yet. A request without such a block was
  // not made in the recorded load, and is placed among the driver's other blocks.
  explicit BlockPlacement(std::vector<DriverBlock> wanted);
  ~BlockPlacement();
  BlockPlacement(const BlockPlacement&) = delete;
  BlockPlacement& operator=(const BlockPlacement&) = delete;

  // The blocks in the range for modules, in the order in which they were made.
  const std::vector<DriverBlock>& blocks() const { return made; }

 private:
  friend class DriverAddresses;
  bool named = false;
  std::vector<DriverBlock> wanted, made;
};

class DriverAddresses {
 public:
  // The one of this process, which has one driver.
  static DriverAddresses& ofProcess();

  // An address for a block, or for another mapping, of `bytes`; 0 if there is none.
  uint64_t take(uint64_t bytes);
  // The same for a block in the range for modules; 0 if this thread has no BlockPlacement, or if it does not place this block.
  uint64_t takeForModules(uint64_t bytes);
  // Frees whatever was taken of [address, address + bytes).
  void give(uint64_t address, uint64_t bytes);
  bool contains(uint64_t address) const;
  // The number of bytes that the driver has taken.
  uint64_t takenBytes();

  // Call when the driver has mapped something at an address of its own choice.
  void noteMapping();
  // How many times this thread has called take(), takeForModules() or noteMapping().
  static uint64_t mappings();
  // Whether the driver asks here for addresses. It does not if it is the real one and its mappings are not intercepted.
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
