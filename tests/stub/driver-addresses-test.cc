// Addresses of the driver's blocks of memory, and how a module gets its own block.
#include "stub/driver/driver-addresses.h"

#include <doctest/doctest.h>

#include <thread>

using namespace vgpu;
using namespace vgpu::stub;

namespace {

constexpr uint64_t block = driverBlockBytes, asked = 2 * block - 4 * KiB;

}  // namespace

TEST_CASE("modules' blocks lie apart from the driver's other blocks, at the lowest free address") {
  DriverAddresses addresses;
  uint64_t other = addresses.take(asked);
  CHECK_FALSE(inModuleBlocks(other));
  BlockPlacement placement;
  uint64_t first = addresses.take(asked), small = addresses.take(2 * MiB), second = addresses.take(block);
  CHECK(first == moduleBlocksBase);
  CHECK_FALSE(inModuleBlocks(small));
  CHECK(second == first + 2 * block);
  CHECK(placement.blocks() == std::vector<DriverBlock>{{first, asked}, {second, block}});
}

TEST_CASE("memory that the driver unmaps from a block at once is unused until the block ends") {
  DriverAddresses addresses;
  BlockPlacement placement;
  uint64_t first = addresses.take(asked);
  addresses.give(first + block, block - 4 * KiB);
  CHECK(addresses.take(block) == first + 2 * block);
  addresses.give(first, block);
  CHECK(addresses.take(block) == first);
}

TEST_CASE("a block with a requested address lies there again, in any order; one made without a request lies elsewhere") {
  DriverAddresses addresses;
  DriverBlock small{moduleBlocksBase + 5 * block, asked}, large{moduleBlocksBase, asked + block},
      other{moduleBlocksBase + 9 * block, asked};
  BlockPlacement placement({small, large, other});
  CHECK(addresses.take(asked + block) == large.address);
  CHECK(addresses.take(asked) == small.address);
  CHECK_FALSE(inModuleBlocks(addresses.take(asked + 8 * block)));
  CHECK(addresses.take(asked) == other.address);
  CHECK_FALSE(inModuleBlocks(addresses.take(asked)));
  CHECK(placement.blocks() == std::vector<DriverBlock>{large, small, other});
}

TEST_CASE("a requested address that is taken is not given twice") {
  DriverAddresses addresses;
  DriverBlock wanted{moduleBlocksBase + block, asked};
  {
    BlockPlacement placement({wanted});
    CHECK(addresses.take(asked) == wanted.address);
  }
  BlockPlacement placement({wanted});
  CHECK_FALSE(inModuleBlocks(addresses.take(asked)));
  CHECK(placement.blocks().empty());
}

TEST_CASE("one thread's requested address does not apply to other threads' blocks") {
  DriverAddresses addresses;
  BlockPlacement placement;
  uint64_t before = DriverAddresses::mappings();
  std::thread([&] { CHECK_FALSE(inModuleBlocks(addresses.take(asked))); }).join();
  CHECK(DriverAddresses::mappings() == before);
  addresses.noteMapping();
  CHECK(DriverAddresses::mappings() == before + 1);
}

TEST_CASE("addresses that never had a block cannot be requested") {
  AddressRanges ranges(0x1000, 0x1000);
  CHECK(ranges.takeAt(0x1800, 0x100));
  CHECK_FALSE(ranges.takeAt(0x1800, 0x100));
  CHECK_FALSE(ranges.takeAt(0x1700, 0x101));
  CHECK_FALSE(ranges.takeAt(0x18ff, 1));
  CHECK_FALSE(ranges.takeAt(0xfff, 2));
  CHECK_FALSE(ranges.takeAt(0x1fff, 2));
  CHECK_FALSE(ranges.takeAt(0x1000, ~uint64_t{0}));
  CHECK(ranges.takeAt(0x1700, 0x100));
  ranges.giveWhole(0x1800);
  CHECK(ranges.takeAt(0x1850, 0x10));
}
