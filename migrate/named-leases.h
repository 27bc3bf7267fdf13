// The leases that the source of a migration has announced to its target, which has leased the same memory ahead.
//
// Leases do not overlap: a new one replaces those that it overlaps, as DeviceLeases::leaseAhead() does. One thread at a time.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "vgpu/base/ranges.h"

namespace vgpu::migrate {

class NamedLeases {
 public:
  // Whether exactly this lease exists.
  bool has(uint64_t address, uint64_t bytes) const {
    auto found = leases.find(address);
    return found != leases.end() && found->second == bytes;
  }
  void add(uint64_t address, uint64_t bytes) {
    auto next = leases.lower_bound(address);
    if (next != leases.begin() && std::prev(next)->first + std::prev(next)->second > address) --next;
    while (next != leases.end() && next->first < address + bytes) next = leases.erase(next);
    leases[address] = bytes;
  }
  // Whether the whole range is leased, by one lease or by several adjacent ones.
  bool cover(uint64_t address, uint64_t bytes) const {
    return isCovered(leases, address, bytes);
  }

 private:
  std::map<uint64_t, uint64_t> leases;  // address to bytes
};

}  // namespace vgpu::migrate
