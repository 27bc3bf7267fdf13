// Address ranges in a map from beginning to size, none of which overlap.
#pragma once

#include <cstdint>
#include <iterator>

namespace vgpu::stub {

// Whether [address, address + bytes) touches no entry of `map`; `size` gives an entry's size.
template <typename Map, typename Size>
bool isFree(const Map& map, uint64_t address, uint64_t bytes, Size size) {
  auto next = map.lower_bound(address);
  if (next != map.end() && next->first < address + bytes) return false;
  if (next == map.begin()) return true;
  auto before = std::prev(next);
  return before->first + size(before->second) <= address;
}

// Whether the entries of `map` cover [address, address + bytes) without a gap.
template <typename Map, typename Size>
bool isCovered(const Map& map, uint64_t address, uint64_t bytes, Size size) {
  uint64_t end = address + bytes;
  if (end < address) return false;
  auto piece = map.upper_bound(address);
  if (piece == map.begin()) return false;
  for (--piece; piece != map.end() && piece->first <= address; ++piece) {
    address = piece->first + size(piece->second);
    if (address >= end) return true;
  }
  return false;
}

}  // namespace vgpu::stub
