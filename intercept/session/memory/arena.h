// The allocator of an arena: which addresses are leased from the worker, which of those are free, which the program has
// allocated. An allocation is decided here and needs no round trip.
//
// Not synchronized: its owner holds a lock. Stays in the program's process over a suspend, because the program has pointers to
// its addresses. A call that throws for lack of memory has changed nothing; what frees never throws.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Arena {
 public:
  // `gap` bytes stay unused between leases, so that no allocation lies in two of them. Allocations are multiples of `unit`.
  Arena(uint64_t base, uint64_t bytes, uint64_t gap = 0, uint64_t unit = allocationAlignment)
      : base(base), size(bytes), gap(gap), unit(unit) {}

  // `bytes` of free leased memory, aligned, for `owner` (the caller's number); nothing if there is none: lease more.
  // bytes > 0.
  std::optional<uint64_t> allocate(uint64_t bytes, uint64_t owner = 0);
  // The same, of a lease of that very size in which nothing is allocated. For large allocations: a lease of its own has no
  // remainder that is too small for the next one, and its memory can be returned to the worker when it is freed.
  std::optional<uint64_t> allocateLease(uint64_t bytes, uint64_t owner = 0);
  // Frees an allocation; false if none begins at `address`.
  bool free(uint64_t address) noexcept;

  // Where a lease of `bytes` (whole granules) could lie; nothing if the arena's addresses are exhausted.
  std::optional<uint64_t> placeLease(uint64_t bytes) const;
  // Reserves those addresses while the worker is asked; settleLease() makes the memory available for allocation, or drops the
  // reservation.
  void reserveLease(uint64_t address, uint64_t bytes) { leases.emplace(address, Lease{bytes, FreeEntries::make()}); }
  void settleLease(uint64_t address, bool granted) noexcept;
  // A lease with nothing allocated in it; its memory is no longer free, and its addresses cannot have another lease before
  // settleLease(address, false): the worker must have ended this one first. If it has not, settleLease(address, true) makes it free
  // again. Nothing if every lease is in use.
  struct Range {
    uint64_t address, bytes, owner = 0;
    uint64_t asked = bytes;  // of an allocation: what the caller wanted; `bytes` is that in whole units
  };
  std::optional<Range> takeIdleLease();

  // An allocation in memory of another session's, in place of a lease whose addresses have been reserved; it is counted neither
  // as leased nor as used. dropShared() ends both.
  void addShared(uint64_t address, uint64_t bytes, uint64_t owner);
  void dropShared(uint64_t lease, uint64_t address);

  // The lease that holds `address`; nothing if none does.
  std::optional<Range> findLease(uint64_t address) const;
  // The allocation that holds it.
  std::optional<Range> find(uint64_t address) const;
  // The one that begins there.
  std::optional<Range> at(uint64_t address) const;
  // What was asked for of the allocation that begins at `address`, which is another's from now on.
  void setAsked(uint64_t address, uint64_t asked);
  // A mark of the allocation that holds `address`, which ends with it. False if none does.
  bool mark(uint64_t address, bool marked);
  bool isMarked(uint64_t address) const;
  // A number of the caller's that belongs to the allocation that begins there, 0 at first; nullptr if none does.
  uint64_t* numberOf(uint64_t address);

  uint64_t freeBytes() const { return leased - used; }
  // Of [address, address + bytes).
  uint64_t freeBytesIn(uint64_t address, uint64_t bytes) const;
  // The minimum that has been free since the last call: memory that was not needed meanwhile.
  uint64_t takeLeastFree() { return std::exchange(leastFree, freeBytes()); }
  uint64_t usedBytes() const { return used; }
  // The entries of a free range in both maps, made by who takes it.
  struct FreeEntries {
    std::map<uint64_t, uint64_t>::node_type byAddress;
    std::multimap<uint64_t, uint64_t>::node_type bySize;
    static FreeEntries make();
  };
  struct Held {
    uint64_t bytes, owner, asked;
    FreeEntries entries;  // for when it is freed
    bool marked = false;
    uint64_t number = 0;
  };
  using Allocations = std::map<uint64_t, Held>;  // by address
  const Allocations& allocations() const { return held; }

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // address -> bytes
  struct Lease {
    uint64_t bytes;
    FreeEntries entries;  // for when it is granted
  };

  // Takes an allocation, or [address, address + bytes) alone, out of a free range that holds it.
  uint64_t allocateIn(Ranges::iterator range, uint64_t address, uint64_t asked, uint64_t owner);
  void take(Ranges::iterator range, uint64_t address, uint64_t bytes);
  // The free range that holds all of a lease; end() if a part of it is allocated.
  Ranges::iterator freeRangeOf(uint64_t address, uint64_t bytes);
  void addFree(uint64_t address, uint64_t bytes, FreeEntries entries) noexcept;
  FreeEntries removeFree(Ranges::iterator range) noexcept;

  uint64_t base, size, gap, unit;
  uint64_t leased = 0, used = 0, leastFree = 0;
  std::map<uint64_t, Lease> leases;  // by address
  Allocations held;
  Ranges freeByAddress;                          // never adjacent
  std::multimap<uint64_t, uint64_t> freeBySize;  // bytes -> address
};

}  // namespace vgpu::client
