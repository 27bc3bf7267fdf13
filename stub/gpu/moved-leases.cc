// Moves leased memory to other driver objects at the same addresses: to objects that other processes may share (shared-leases.cc), or to
// the memory of another GPU of the session, where that GPU's kernels use it at full speed.
#include <algorithm>

#include "stub/gpu/device-leases.h"
#include "vgpu/base/ranges.h"

namespace vgpu::stub {

// Maps an object temporarily for copies, in the part of the arena that is reserved for moves. With the access that leases have: an object
// that cannot have it must not become part of a lease.
CUresult DeviceLeases::mapAside(uint64_t bytes, CUmemGenericAllocationHandle physical, uint64_t at) {
  CUresult error = driver.cuMemMap(at, bytes, 0, physical, 0);
  if (error != CUDA_SUCCESS) return error;
  std::lock_guard lock(mutex);
  error = driver.cuMemSetAccess(at, bytes, access.data(), access.size());
  if (error != CUDA_SUCCESS) driver.cuMemUnmap(at, bytes);
  return error;
}

// Replaces `range` by the new objects `by`, with the same bytes. The rest of the pieces that the range touches gets new objects too. On
// failure before anything is unmapped, `by` is released and nothing has changed.
CUresult DeviceLeases::replace(Pieces& pieces, const Range& range, Pieces by) {
  auto first = holding(pieces, range.begin), last = pieces.lower_bound(range.end);
  const uint64_t begin = first->first, end = std::prev(last)->first + std::prev(last)->second.bytes;
  CUresult error = end - begin > movingPartBytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  auto besides = [&](uint64_t from, uint64_t to) {
    if (from == to || error != CUDA_SUCCESS) return;
    Piece rest{};
    error = make(to - from, holding(pieces, from)->second.gpu, rest);
    if (error == CUDA_SUCCESS) by.emplace(from, rest);
  };
  besides(begin, range.begin);
  besides(range.end, end);

  const uint64_t aside = deviceArena(device) + movingPart - begin;
  std::vector<uint64_t> mapped;
  for (auto& [at, piece] : by) {
    if (error == CUDA_SUCCESS) error = mapAside(piece.bytes, piece.physical, at + aside);
    if (error != CUDA_SUCCESS) break;
    mapped.push_back(at);
    error = driver.cuMemcpyDtoD_v2(at + aside, at, piece.bytes);
  }
  if (error == CUDA_SUCCESS) error = driver.cuCtxSynchronize_v2(nullptr);
  for (uint64_t at : mapped) driver.cuMemUnmap(at + aside, by.at(at).bytes);
  if (error == CUDA_SUCCESS) error = driver.cuMemUnmap(first->first, first->second.bytes);
  if (error != CUDA_SUCCESS) return release(by), error;
  // From here on the old state cannot be restored.
  for (auto each = first; each != last; ++each) {
    if (each != first)
      require(driver, driver.cuMemUnmap(each->first, each->second.bytes), "unmapping memory that has been moved");
    driver.cuMemRelease(each->second.physical);
  }
  pieces.erase(first, last);
  std::lock_guard lock(mutex);
  for (auto& [at, piece] : by) require(driver, map(at, piece), "mapping memory that has been moved");
  pieces.merge(by);
  return CUDA_SUCCESS;
}

bool DeviceLeases::areWhole(const std::vector<Placement>& placements, uint64_t bytes) {
  for (auto& placement : placements) {
    if (placement.bytes == 0 || !isGranular(placement.bytes) || placement.bytes > bytes) return false;
    bytes -= placement.bytes;
  }
  return bytes == 0;
}

std::optional<std::vector<DeviceLeases::Move>> DeviceLeases::findMoves(uint64_t address,
                                                                       const std::vector<Placement>& placements) const {
  auto lease = leases.find(address);
  if (lease == leases.end() || !inManagedPart(address) || !areWhole(placements, lease->second.bytes)) return std::nullopt;
  const Pieces& pieces = lease->second.pieces;
  std::vector<Move> moves;
  uint64_t begin = address;
  for (auto& placement : placements) {
    const uint64_t end = begin + placement.bytes;
    const CUdevice gpu = driver.device(placement.device);
    for (auto at = holding(pieces, begin); at != pieces.end() && at->first < end; ++at)
      if (at->second.gpu != gpu) moves.push_back({std::max(begin, at->first), std::min(end, at->first + at->second.bytes), gpu});
    begin = end;
  }
  return moves;
}

CUresult DeviceLeases::move(const std::vector<Move>& moves) {
  for (auto& [begin, end, gpu] : moves) {
    Piece moved{};
    if (CUresult error = make(end - begin, gpu, moved)) return error;
    if (CUresult error = replace(leaseOf(begin).pieces, {begin, end}, {{begin, moved}})) return error;
  }
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
