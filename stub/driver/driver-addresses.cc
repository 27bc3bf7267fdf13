#include "stub/driver/driver-addresses.h"

#include <kj/debug.h>

#include <algorithm>

namespace vgpu::stub {

namespace {

constexpr uint64_t smallPage = 64 * KiB, largePage = 2 * MiB;  // page sizes of the GPU: the driver aligns at least to the smaller

thread_local BlockPlacement* activePlacement = nullptr;
thread_local uint64_t mappingsOfThread = 0;

}  // namespace

BlockPlacement::BlockPlacement() {
  KJ_REQUIRE(activePlacement == nullptr, "this thread is already placing blocks");
  activePlacement = this;
}

BlockPlacement::BlockPlacement(std::vector<DriverBlock> wantedIn) : BlockPlacement() {
  named = true;
  wanted = std::move(wantedIn);
}

BlockPlacement::~BlockPlacement() { activePlacement = nullptr; }

// Never destroyed: the driver unmaps memory until the process has ended.
DriverAddresses& DriverAddresses::ofProcess() {
  static auto* addresses = new DriverAddresses;
  return *addresses;
}

uint64_t DriverAddresses::takeForModules(uint64_t bytes) {
  ++mappingsOfThread;
  if (activePlacement == nullptr || bytes < driverBlockBytes) return 0;
  std::lock_guard lock(mutex);
  return place(*activePlacement, bytes);
}

uint64_t DriverAddresses::take(uint64_t bytes) {
  if (uint64_t address = takeForModules(bytes)) return address;
  std::lock_guard lock(mutex);
  return others.take(bytes, bytes >= largePage ? largePage : smallPage).value_or(0);
}

// The driver unmaps a part of the block at once. That part stays taken until the block is freed, so that the whole block can be placed
// there again whatever other blocks exist.
uint64_t DriverAddresses::place(BlockPlacement& placement, uint64_t bytes) {
  DriverBlock block{0, bytes};
  if (placement.named) {
    auto place = std::ranges::find(placement.wanted, bytes, &DriverBlock::bytes);
    if (place == placement.wanted.end()) return 0;
    block = *place;
    placement.wanted.erase(place);
    if (!modules.takeAt(block.address, bytes)) return 0;
  } else {
    block.address = modules.take(bytes, driverBlockBytes).value_or(0);
    if (block.address == 0) return 0;
  }
  placement.made.push_back(block);
  return block.address;
}

void DriverAddresses::give(uint64_t address, uint64_t bytes) {
  std::lock_guard lock(mutex);
  if (modules.contains(address))
    modules.giveWhole(address);
  else
    others.give(address, bytes);
}

uint64_t DriverAddresses::takenBytes() {
  std::lock_guard lock(mutex);
  return others.takenBytes() + modules.takenBytes();
}

bool DriverAddresses::contains(uint64_t address) const { return modules.contains(address) || others.contains(address); }

void DriverAddresses::noteMapping() { ++mappingsOfThread; }

uint64_t DriverAddresses::mappings() { return mappingsOfThread; }

}  // namespace vgpu::stub
