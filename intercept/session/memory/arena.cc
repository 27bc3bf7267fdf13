#include "intercept/session/memory/arena.h"

#include <algorithm>
#include <iterator>

#include "vgpu/base/ranges.h"

namespace vgpu::client {

Arena::FreeEntries Arena::FreeEntries::make() {
  std::map<uint64_t, uint64_t> byAddress{{0, 0}};
  std::multimap<uint64_t, uint64_t> bySize{{0, 0}};
  return {byAddress.extract(byAddress.begin()), bySize.extract(bySize.begin())};
}

std::optional<uint64_t> Arena::allocate(uint64_t bytes, uint64_t owner) {
  auto best = freeBySize.lower_bound(roundUp(bytes, unit));
  if (best == freeBySize.end()) return std::nullopt;
  return allocateIn(freeByAddress.find(best->second), best->second, bytes, owner);
}

std::optional<uint64_t> Arena::allocateLease(uint64_t bytes, uint64_t owner) {
  for (auto& [address, lease] : leases) {
    if (lease.bytes != roundUp(bytes, leaseGranularity)) continue;
    auto range = freeRangeOf(address, lease.bytes);
    if (range != freeByAddress.end()) return allocateIn(range, address, bytes, owner);
  }
  return std::nullopt;
}

uint64_t Arena::allocateIn(Ranges::iterator range, uint64_t address, uint64_t asked, uint64_t owner) {
  const uint64_t bytes = roundUp(asked, unit);
  auto entry = held.emplace(address, Held{bytes, owner, asked, FreeEntries::make()}).first;
  try {
    take(range, address, bytes);
  } catch (...) {
    held.erase(entry);
    throw;
  }
  used += bytes;
  leastFree = std::min(leastFree, freeBytes());
  return address;
}

// The map entries of `range` are reused for a part that stays free; a second part needs new ones.
void Arena::take(Ranges::iterator range, uint64_t address, uint64_t bytes) {
  const uint64_t start = range->first, end = start + range->second, after = address + bytes;
  FreeEntries second;
  if (start < address && after < end) second = FreeEntries::make();
  FreeEntries first = removeFree(range);
  if (start < address) addFree(start, address - start, std::move(first));
  if (after < end) addFree(after, end - after, start < address ? std::move(second) : std::move(first));
}

Arena::Ranges::iterator Arena::freeRangeOf(uint64_t address, uint64_t bytes) {
  auto range = holding(freeByAddress, address);
  if (range == freeByAddress.end() || range->first + range->second < address + bytes) return freeByAddress.end();
  return range;
}

bool Arena::free(uint64_t address) noexcept {
  auto found = held.find(address);
  if (found == held.end()) return false;
  used -= found->second.bytes;
  addFree(address, found->second.bytes, std::move(found->second.entries));
  held.erase(found);
  return true;
}

std::optional<uint64_t> Arena::placeLease(uint64_t bytes) const {
  uint64_t at = base;
  for (auto& [address, lease] : leases) {
    if (at + bytes + gap <= address) return at;
    at = address + lease.bytes + gap;
  }
  if (at <= base + size && base + size - at >= bytes) return at;
  return std::nullopt;
}

void Arena::settleLease(uint64_t address, bool granted) noexcept {
  auto lease = leases.find(address);
  if (granted) {
    leased += lease->second.bytes;
    addFree(address, lease->second.bytes, std::move(lease->second.entries));
  } else {
    leases.erase(lease);
  }
}

std::optional<Arena::Range> Arena::takeIdleLease() {
  for (auto& [address, lease] : leases) {
    auto range = freeRangeOf(address, lease.bytes);
    if (range == freeByAddress.end()) continue;
    lease.entries = FreeEntries::make();
    take(range, address, lease.bytes);
    leased -= lease.bytes;
    leastFree = std::min(leastFree, freeBytes());
    return Range{address, lease.bytes};
  }
  return std::nullopt;
}

uint64_t Arena::freeBytesIn(uint64_t address, uint64_t bytes) const {
  uint64_t free = 0;
  const uint64_t end = address + bytes;
  auto range = freeByAddress.upper_bound(address);
  if (range != freeByAddress.begin()) --range;
  for (; range != freeByAddress.end() && range->first < end; ++range) {
    const uint64_t first = std::max(range->first, address), last = std::min(range->first + range->second, end);
    if (first < last) free += last - first;
  }
  return free;
}

void Arena::addShared(uint64_t address, uint64_t bytes, uint64_t owner) {
  held.emplace(address, Held{roundUp(bytes, unit), owner, bytes, FreeEntries::make()});
}

void Arena::dropShared(uint64_t lease, uint64_t address) {
  held.erase(address);
  leases.erase(lease);
}

std::optional<Arena::Range> Arena::findLease(uint64_t address) const {
  auto lease = holding(leases, address);
  if (lease == leases.end()) return std::nullopt;
  return Range{lease->first, lease->second.bytes};
}

std::optional<Arena::Range> Arena::find(uint64_t address) const {
  auto found = holding(held, address);
  if (found == held.end()) return std::nullopt;
  return Range{found->first, found->second.bytes, found->second.owner, found->second.asked};
}

void Arena::setAsked(uint64_t address, uint64_t asked) {
  if (auto found = held.find(address); found != held.end()) found->second.asked = asked;
}

bool Arena::mark(uint64_t address, bool marked) {
  auto found = holding(held, address);
  if (found == held.end()) return false;
  found->second.marked = marked;
  return true;
}

bool Arena::isMarked(uint64_t address) const {
  auto found = holding(held, address);
  return found != held.end() && found->second.marked;
}

uint64_t* Arena::numberOf(uint64_t address) {
  auto found = held.find(address);
  return found == held.end() ? nullptr : &found->second.number;
}

std::optional<Arena::Range> Arena::at(uint64_t address) const {
  auto found = held.find(address);
  if (found == held.end()) return std::nullopt;
  return Range{found->first, found->second.bytes, found->second.owner, found->second.asked};
}

void Arena::addFree(uint64_t address, uint64_t bytes, FreeEntries entries) noexcept {
  auto next = freeByAddress.lower_bound(address);
  if (next != freeByAddress.end() && next->first == address + bytes) {
    bytes += next->second;
    removeFree(next);
  }
  next = freeByAddress.lower_bound(address);
  if (next != freeByAddress.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == address) {
      address = before->first;
      bytes += before->second;
      removeFree(before);
    }
  }
  entries.byAddress.key() = entries.bySize.mapped() = address;
  entries.byAddress.mapped() = entries.bySize.key() = bytes;
  freeByAddress.insert(std::move(entries.byAddress));
  freeBySize.insert(std::move(entries.bySize));
}

Arena::FreeEntries Arena::removeFree(Ranges::iterator range) noexcept {
  auto entry = freeBySize.lower_bound(range->second);
  while (entry->second != range->first) ++entry;
  FreeEntries entries;
  entries.bySize = freeBySize.extract(entry);
  entries.byAddress = freeByAddress.extract(range);
  return entries;
}

}  // namespace vgpu::client
