#include "intercept/session/memory/reservations.h"

#include <algorithm>

#include "vgpu/base/ranges.h"

namespace vgpu::client {

std::optional<uint64_t> Reservations::place(uint64_t bytes, uint64_t alignment, uint64_t wanted) const {
  if (wanted % alignment == 0 && isMappedRange(wanted, bytes) && isFree(ranges, wanted, bytes)) return wanted;
  uint64_t at = mappedArenaBase;  // aligned to every valid alignment
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
  auto found = holding(ranges, address);
  if (found == ranges.end() || bytes > found->second - (address - found->first)) return std::nullopt;
  return Range{found->first, found->second};
}

}  // namespace vgpu::client
