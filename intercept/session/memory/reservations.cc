#include "intercept/session/memory/reservations.h"

#include <algorithm>

namespace vgpu::client {

std::optional<uint64_t> Reservations::place(uint64_t bytes, uint64_t alignment, uint64_t wanted) const {
  auto isFree = [&](uint64_t address) {
    auto next = ranges.lower_bound(address);
    if (next != ranges.end() && next->first - address < bytes) return false;
    return next == ranges.begin() || std::prev(next)->first + std::prev(next)->second <= address;
  };
  if (wanted % alignment == 0 && isMappedRange(wanted, bytes) && isFree(wanted)) return wanted;
  uint64_t at = mappedArenaBase;  // a multiple of every alignment that fits
  for (auto& [address, size] : ranges) {
    if (at <= address && address - at >= bytes) break;
    at = std::max(at, roundUp(address + size, alignment));
  }
  return isMappedRange(at, bytes) ? std::optional(at) : std::nullopt;
}

CUresult Reservations::reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, CUdeviceptr* address) {
  if (bytes == 0 || !isGranular(bytes) || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > mappedArenaBytes || alignment > mappedArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  auto found = place(bytes, std::max(alignment, leaseGranularity), wanted);
  if (!found) return CUDA_ERROR_OUT_OF_MEMORY;
  ranges.emplace(*found, bytes);
  *address = *found;
  return CUDA_SUCCESS;
}

CUresult Reservations::free(uint64_t address, uint64_t bytes) {
  auto found = ranges.find(address);
  if (found == ranges.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  ranges.erase(found);
  return CUDA_SUCCESS;
}

std::optional<Reservations::Range> Reservations::find(uint64_t address, uint64_t bytes) const {
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return std::nullopt;
  auto& [begin, size] = *std::prev(next);
  const uint64_t offset = address - begin;
  if (offset > size || bytes > size - offset) return std::nullopt;
  return Range{begin, size};
}

}  // namespace vgpu::client
