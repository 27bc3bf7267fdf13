// An arena's book-keeping: which addresses are leased from the worker, which of those are free, which the program holds.
// An allocation is a decision made here, not a round trip.
//
// Not synchronized: its owner holds a lock. Stays in the program's process over a suspend, because the program's pointers
// are made of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Arena {
 public:
  // `gap` bytes stay unused between leases, so that no allocation lies in two of them.
  Arena(uint64_t base, uint64_t bytes, uint64_t gap = 0) : base(base), size(bytes), gap(gap) {}

  // `bytes` of free leased memory, aligned, for `owner` (the caller's number); nothing if there is none: lease more.
  // bytes > 0.
  std::optional<uint64_t> allocate(uint64_t bytes, uint64_t owner = 0);
  // The same, of a lease of that very size in which nothing is allocated. For large allocations: in a lease of its own one
  // leaves no remainder that is too small for the next, and its memory can go back to the worker when it is freed.
  std::optional<uint64_t> allocateLease(uint64_t bytes, uint64_t owner = 0);
  // Gives an allocation back; false if `address` begins none.
  bool free(uint64_t address);

  // Where a lease of `bytes` (whole granules) could lie; nothing if the arena's addresses are exhausted.
  std::optional<uint64_t> placeLease(uint64_t bytes) const;
  // Takes that place while the worker is asked; settleLease() frees its memory for allocation, or forgets it.
  void reserveLease(uint64_t address, uint64_t bytes) { leases.emplace(address, bytes); }
  void settleLease(uint64_t address, bool granted);
  // A lease with nothing allocated in it; its addresses stop being free, and are no place for another lease before
  // settleLease(address, false): the worker must have ended this one first. Nothing if every lease is in use.
  struct Range {
    uint64_t address, bytes, owner = 0;
  };
  std::optional<Range> takeIdleLease();

  // The allocation that holds `address`; nothing if none does.
  std::optional<Range> find(uint64_t address) const;
  // The one that begins there.
  std::optional<Range> at(uint64_t address) const;

  uint64_t freeBytes() const { return leased - used; }
  // The least that has been free since this was asked last: what nobody has needed meanwhile.
  uint64_t takeLeastFree() { return std::exchange(leastFree, freeBytes()); }
  uint64_t usedBytes() const { return used; }
  struct Held {
    uint64_t bytes, owner;
  };
  const std::map<uint64_t, Held>& allocations() const { return held; }  // by address

 private:
  uint64_t take(std::map<uint64_t, uint64_t>::iterator range, uint64_t address, const Held& allocation);
  // The free range that holds all of a lease; the end where a part of it is allocated.
  std::map<uint64_t, uint64_t>::iterator freeRangeOf(const std::pair<const uint64_t, uint64_t>& lease);
  void addFree(uint64_t address, uint64_t bytes);
  void removeFree(std::map<uint64_t, uint64_t>::iterator range);

  uint64_t base, size, gap;
  uint64_t leased = 0, used = 0, leastFree = 0;
  std::map<uint64_t, uint64_t> leases;                 // address -> bytes
  std::map<uint64_t, Held> held;                       // by address
  std::map<uint64_t, uint64_t> freeByAddress;          // address -> bytes, never adjacent
  std::multimap<uint64_t, uint64_t> freeBySize;        // bytes -> address
};

}  // namespace vgpu::client
