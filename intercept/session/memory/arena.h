// The allocator of an arena: which addresses are leased from the worker, which of them are free, and which the program has allocated. An
// allocation is decided here, without a round trip.
//
// Not synchronized: the owner holds a lock. Stays in the program's process over a suspend, because the program holds pointers into the
// arena. A call that throws for lack of memory has changed nothing; freeing never throws.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Arena {
 public:
  // `gap` unused bytes separate leases, so that no allocation spans two of them. Allocation sizes are multiples of `unit`.
  Arena(uint64_t base, uint64_t bytes, uint64_t gap = 0, uint64_t unit = allocationAlignment)
      : base(base), size(bytes), gap(gap), unit(unit) {}

  // Allocates `bytes` (> 0) of free leased memory, aligned, for `owner` (a number of the caller's). Nothing if no free range fits: lease
  // more.
  std::optional<uint64_t> allocate(uint64_t bytes, uint64_t owner = 0);
  // Allocates a whole lease of exactly that size that is free. For large allocations: a lease of their own leaves no remainder too small
  // for the next one, and can be returned to the worker when it is freed.
  std::optional<uint64_t> allocateLease(uint64_t bytes, uint64_t owner = 0);
  // Frees an allocation; false if none starts at `address`.
  bool free(uint64_t address) noexcept;

  // A free address range for a lease of `bytes` (whole granules); nothing if the arena's addresses are exhausted.
  std::optional<uint64_t> placeLease(uint64_t bytes) const;
  // Reserves those addresses during the request to the worker; settleLease() makes the memory available for allocation, or drops the
  // reservation.
  void reserveLease(uint64_t address, uint64_t bytes) { leases.emplace(address, Lease{bytes, FreeEntries::make()}); }
  void settleLease(uint64_t address, bool granted) noexcept;
  // Takes a lease without allocations, in order to return it to the worker: its memory is no longer free, and its addresses stay reserved
  // until settleLease(address, false), once the worker has ended the lease. If the worker has not, settleLease(address, true) makes the
  // memory free again. Nothing if every lease is in use.
  struct Range {
    uint64_t address, bytes, owner = 0;
    uint64_t asked = bytes;  // of an allocation: the size that the caller requested; `bytes` is rounded up to whole units
  };
  std::optional<Range> takeIdleLease();

  // Adds an allocation in another session's memory at addresses that reserveLease() has reserved; it counts neither as leased nor as used.
  // dropShared() ends both.
  void addShared(uint64_t address, uint64_t bytes, uint64_t owner);
  void dropShared(uint64_t lease, uint64_t address);

  // The lease that contains `address`; nothing if there is none.
  std::optional<Range> findLease(uint64_t address) const;
  // The allocation that contains `address`.
  std::optional<Range> find(uint64_t address) const;
  // The allocation that starts at `address`.
  std::optional<Range> at(uint64_t address) const;
  // Changes the requested size of the allocation that starts at `address`, which is reused for a new request.
  void setAsked(uint64_t address, uint64_t asked);
  // Sets a flag of the allocation that contains `address`; freeing it clears the flag. False if there is no allocation.
  bool mark(uint64_t address, bool marked);
  bool isMarked(uint64_t address) const;
  // A number of the caller's, stored with the allocation that starts at `address`, initially 0; nullptr if there is no allocation.
  uint64_t* numberOf(uint64_t address);

  uint64_t freeBytes() const { return leased - used; }
  // Free bytes in [address, address + bytes).
  uint64_t freeBytesIn(uint64_t address, uint64_t bytes) const;
  // The minimum of freeBytes() since the last call: memory that was not needed meanwhile.
  uint64_t takeLeastFree() { return std::exchange(leastFree, freeBytes()); }
  uint64_t usedBytes() const { return used; }
  // The nodes of a free range for both maps. They are allocated together with an allocation or lease, so that freeing it cannot throw.
  struct FreeEntries {
    std::map<uint64_t, uint64_t>::node_type byAddress;
    std::multimap<uint64_t, uint64_t>::node_type bySize;
    static FreeEntries make();
  };
  struct Held {
    uint64_t bytes, owner, asked;
    FreeEntries entries;  // used when it is freed
    bool marked = false;
    uint64_t number = 0;
  };
  using Allocations = std::map<uint64_t, Held>;  // by address
  const Allocations& allocations() const { return held; }

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // address -> bytes
  struct Lease {
    uint64_t bytes;
    FreeEntries entries;  // used when it is granted
  };

  // Takes an allocation, or just [address, address + bytes), out of a free range that contains it.
  uint64_t allocateIn(Ranges::iterator range, uint64_t address, uint64_t asked, uint64_t owner);
  void take(Ranges::iterator range, uint64_t address, uint64_t bytes);
  // The free range that contains a whole lease; end() if part of the lease is allocated.
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
