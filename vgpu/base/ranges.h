// Non-overlapping address ranges in a map, keyed by their start address. The mapped value gives the number of bytes: itself, its member
// `bytes`, or what `size` returns for it.
#pragma once

#include <cstdint>
#include <iterator>

namespace vgpu {

struct BytesOf {
  uint64_t operator()(uint64_t bytes) const { return bytes; }
  template <typename Entry>
    requires requires(const Entry& entry) { entry.bytes; }
  uint64_t operator()(const Entry& entry) const {
    return entry.bytes;
  }
};

// The entry that holds `address`; the map's end if none does.
template <typename Map, typename Size = BytesOf>
auto holding(Map& map, uint64_t address, Size size = {}) {
  auto next = map.upper_bound(address);
  if (next == map.begin()) return map.end();
  auto found = std::prev(next);
  return address - found->first < size(found->second) ? found : map.end();
}

// Whether [address, address + bytes) touches no entry.
template <typename Map, typename Size = BytesOf>
bool isFree(const Map& map, uint64_t address, uint64_t bytes, Size size = {}) {
  auto next = map.lower_bound(address);
  if (next != map.end() && next->first - address < bytes) return false;
  return holding(map, address, size) == map.end();
}

// Whether the entries cover [address, address + bytes) without a gap.
template <typename Map, typename Size = BytesOf>
bool isCovered(const Map& map, uint64_t address, uint64_t bytes, Size size = {}) {
  const uint64_t end = address + bytes;
  if (end < address) return false;
  auto piece = map.upper_bound(address);
  if (piece == map.begin()) return false;
  for (--piece; piece != map.end() && piece->first <= address; ++piece) {
    address = piece->first + size(piece->second);
    if (address >= end) return true;
  }
  return false;
}

}  // namespace vgpu
