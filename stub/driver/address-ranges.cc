#include "stub/driver/address-ranges.h"

#include <algorithm>
#include <iterator>

#include "vgpu/wire/arena.h"

namespace vgpu::stub {

std::optional<uint64_t> AddressRanges::take(uint64_t bytes, uint64_t unit) {
  uint64_t at = roundUp(base, unit);
  for (auto [from, to] : taken) {
    if (from >= at && from - at >= bytes) break;
    at = std::max(at, roundUp(to, unit));
  }
  if (bytes == 0 || at > end || bytes > end - at) return std::nullopt;
  taken[at] = at + bytes;
  return at;
}

uint64_t AddressRanges::takenBytes() const {
  uint64_t bytes = 0;
  for (auto [from, to] : taken) bytes += to - from;
  return bytes;
}

bool AddressRanges::takeAt(uint64_t address, uint64_t bytes) {
  if (bytes == 0 || address < base || address > end || bytes > end - address) return false;
  auto next = taken.lower_bound(address);
  if (next != taken.end() && next->first - address < bytes) return false;
  if (next != taken.begin() && std::prev(next)->second > address) return false;
  taken[address] = address + bytes;
  return true;
}

void AddressRanges::give(uint64_t address, uint64_t bytes) {
  uint64_t last = address + bytes;
  auto range = taken.upper_bound(address);
  if (range != taken.begin()) --range;
  while (range != taken.end() && range->first < last) {
    auto [from, to] = *range;
    if (to <= address) {
      ++range;
      continue;
    }
    range = taken.erase(range);
    if (from < address) taken[from] = address;
    if (to > last) taken[last] = to;
  }
}

}  // namespace vgpu::stub
