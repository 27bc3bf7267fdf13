#include "intercept/session/memory/arena.h"

#include <algorithm>
#include <iterator>

namespace vgpu::client {

std::optional<uint64_t> Arena::allocate(uint64_t bytes, uint64_t owner) {
  const uint64_t whole = roundUp(bytes, unit);
  auto best = freeBySize.lower_bound(whole);
  if (best == freeBySize.end()) return std::nullopt;
  return take(freeByAddress.find(best->second), best->second, {whole, owner, bytes});
}

std::optional<uint64_t> Arena::allocateLease(uint64_t bytes, uint64_t owner) {
  for (auto& lease : leases) {
    if (lease.second != roundUp(bytes, leaseGranularity)) continue;
    auto range = freeRangeOf(lease);
    if (range != freeByAddress.end()) return take(range, lease.first, {roundUp(bytes, unit), owner, bytes});
  }
  return std::nullopt;
}

uint64_t Arena::take(std::map<uint64_t, uint64_t>::iterator range, uint64_t address, const Held& allocation) {
  uint64_t bytes = allocation.bytes;
  uint64_t start = range->first, end = range->first + range->second;
  removeFree(range);
  if (start < address) addFree(start, address - start);
  if (address + bytes < end) addFree(address + bytes, end - address - bytes);
  held.emplace(address, allocation);
  used += bytes;
  leastFree = std::min(leastFree, freeBytes());
  return address;
}

std::map<uint64_t, uint64_t>::iterator Arena::freeRangeOf(const std::pair<const uint64_t, uint64_t>& lease) {
  auto range = freeByAddress.upper_bound(lease.first);
  if (range == freeByAddress.begin()) return freeByAddress.end();
  --range;
  return range->first + range->second >= lease.first + lease.second ? range : freeByAddress.end();
}

bool Arena::free(uint64_t address) {
  auto found = held.find(address);
  if (found == held.end()) return false;
  used -= found->second.bytes;
  addFree(address, found->second.bytes);
  held.erase(found);
  return true;
}

std::optional<uint64_t> Arena::placeLease(uint64_t bytes) const {
  uint64_t at = base;
  for (auto& [address, leaseBytes] : leases) {
    if (at + bytes + gap <= address) return at;
    at = address + leaseBytes + gap;
  }
  if (at <= base + size && base + size - at >= bytes) return at;
  return std::nullopt;
}

void Arena::settleLease(uint64_t address, bool granted) {
  auto lease = leases.find(address);
  if (granted) {
    leased += lease->second;
    addFree(address, lease->second);
  } else {
    leases.erase(lease);
  }
}

std::optional<Arena::Range> Arena::takeIdleLease() {
  for (auto lease = leases.begin(); lease != leases.end(); ++lease) {
    auto [address, bytes] = *lease;
    auto range = freeRangeOf(*lease);
    if (range == freeByAddress.end()) continue;
    uint64_t freeAt = range->first, freeEnd = range->first + range->second;
    removeFree(range);
    if (freeAt < address) addFree(freeAt, address - freeAt);
    if (freeEnd > address + bytes) addFree(address + bytes, freeEnd - address - bytes);
    leased -= bytes;
    leastFree = std::min(leastFree, freeBytes());
    return Range{address, bytes};
  }
  return std::nullopt;
}

void Arena::addShared(uint64_t address, uint64_t bytes, uint64_t owner) {
  held.emplace(address, Held{roundUp(bytes, unit), owner, bytes});
}

void Arena::dropShared(uint64_t lease, uint64_t address) {
  held.erase(address);
  leases.erase(lease);
}

std::optional<Arena::Range> Arena::find(uint64_t address) const {
  auto found = holding(address);
  if (found == held.end()) return std::nullopt;
  return Range{found->first, found->second.bytes, found->second.owner, found->second.asked};
}

void Arena::setAsked(uint64_t address, uint64_t asked) {
  if (auto found = held.find(address); found != held.end()) found->second.asked = asked;
}

bool Arena::mark(uint64_t address, bool marked) {
  auto found = holding(address);
  if (found == held.end()) return false;
  held.at(found->first).marked = marked;
  return true;
}

bool Arena::isMarked(uint64_t address) const {
  auto found = holding(address);
  return found != held.end() && found->second.marked;
}

Arena::Allocations::const_iterator Arena::holding(uint64_t address) const {
  auto next = held.upper_bound(address);
  if (next == held.begin()) return held.end();
  --next;
  return address - next->first < next->second.bytes ? next : held.end();
}

std::optional<Arena::Range> Arena::at(uint64_t address) const {
  auto found = held.find(address);
  if (found == held.end()) return std::nullopt;
  return Range{found->first, found->second.bytes, found->second.owner, found->second.asked};
}

void Arena::addFree(uint64_t address, uint64_t bytes) {
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
  freeByAddress.emplace(address, bytes);
  freeBySize.emplace(bytes, address);
}

void Arena::removeFree(std::map<uint64_t, uint64_t>::iterator range) {
  auto [first, last] = freeBySize.equal_range(range->second);
  for (auto entry = first; entry != last; ++entry)
    if (entry->second == range->first) {
      freeBySize.erase(entry);
      break;
    }
  freeByAddress.erase(range);
}

}  // namespace vgpu::client
