// What of leased memory other processes share, moved to objects of the driver's own, and back; and copies from what they have
// leased.
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "stub/gpu/device-leases.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

// The first granule and the last, if the allocation does not fill them, what lies between, and no part in two leases.
std::vector<DeviceLeases::Range> DeviceLeases::partsOf(uint64_t address, uint64_t bytes) const {
  const uint64_t end = address + bytes, first = address / leaseGranularity * leaseGranularity,
                 last = roundUp(end, leaseGranularity);
  std::vector<uint64_t> cuts{first, last};
  if (first < address && first + leaseGranularity < last) cuts.push_back(first + leaseGranularity);
  if (end < last && last - leaseGranularity > first) cuts.push_back(last - leaseGranularity);
  for (auto& [begin, lease] : leases) {
    if (begin > first && begin < last) cuts.push_back(begin);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Range> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) parts.push_back({cuts[i], cuts[i + 1]});
  return parts;
}

// That holds the address, which is leased.
DeviceLeases::Lease& DeviceLeases::leaseOf(uint64_t address) { return std::prev(leases.upper_bound(address))->second; }

CUresult DeviceLeases::share(uint64_t address, uint64_t bytes, std::vector<Part>& parts) {
  if (bytes == 0 || !owns(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Range> ranges = partsOf(address, bytes);
  for (auto& range : ranges) {
    CUresult error = shareOne(range, parts);
    if (error == CUDA_SUCCESS) continue;
    for (size_t i = 0; i < parts.size(); ++i) {
      close(parts[i].descriptor);
      unshareOne(ranges[i]);
    }
    parts.clear();
    return error;
  }
  return CUDA_SUCCESS;
}

CUresult DeviceLeases::shareOne(const Range& range, std::vector<Part>& parts) {
  Pieces& pieces = leaseOf(range.begin).pieces;
  auto found = pieces.find(range.begin);
  const bool isThere = found != pieces.end() && found->second.shared != 0 && found->second.bytes == range.end - range.begin;
  if (!isThere) {
    Piece own{range.end - range.begin, 0};
    if (CUresult error = make(own.bytes, own.physical)) return error;
    if (CUresult error = replace(pieces, range, {{range.begin, own}})) return error;
  }
  Piece& shared = pieces.at(range.begin);
  int descriptor = -1;
  CUresult error = driver.cuMemExportToShareableHandle(&descriptor, shared.physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (error != CUDA_SUCCESS) return error;
  ++shared.shared;
  parts.push_back({shared.bytes, descriptor});
  return CUDA_SUCCESS;
}

CUresult DeviceLeases::unshare(uint64_t address, uint64_t bytes) {
  CUresult first = CUDA_SUCCESS;
  for (auto& range : partsOf(address, bytes))
    if (CUresult error = unshareOne(range); first == CUDA_SUCCESS) first = error;
  return first;
}

CUresult DeviceLeases::unshareOne(const Range& range) {
  Pieces& pieces = leaseOf(range.begin).pieces;
  auto found = pieces.find(range.begin);
  if (found == pieces.end() || found->second.shared == 0) return CUDA_ERROR_INVALID_VALUE;
  if (--found->second.shared != 0) return CUDA_SUCCESS;
  Piece own{found->second.bytes, 0};
  if (CUresult error = make(own.bytes, own.physical)) return error;
  return replace(pieces, range, {{range.begin, own}});
}

// For copies, at an address of the part of the arena that is for that.
CUresult DeviceLeases::mapAside(uint64_t bytes, CUmemGenericAllocationHandle physical, uint64_t at) {
  const CUmemAccessDesc ours{{CU_MEM_LOCATION_TYPE_DEVICE, {driver.device(device)}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult error = driver.cuMemMap(at, bytes, 0, physical, 0);
  if (error != CUDA_SUCCESS) return error;
  error = driver.cuMemSetAccess(at, bytes, &ours, 1);
  if (error != CUDA_SUCCESS) driver.cuMemUnmap(at, bytes);
  return error;
}

std::vector<DeviceLeases::Shown> DeviceLeases::show(size_t most) const {
  std::vector<std::pair<uint64_t, const Piece*>> all;
  std::lock_guard lock(mutex);
  for (auto& [address, lease] : leases)
    for (auto& [at, piece] : lease.pieces) all.emplace_back(at, &piece);
  std::ranges::stable_sort(all, std::greater(), [](const auto& each) { return each.second->bytes; });
  if (all.size() > most) all.resize(most);
  std::vector<Shown> shown;
  for (auto& [at, piece] : all) {
    int descriptor = -1;
    CUresult error =
        driver.cuMemExportToShareableHandle(&descriptor, piece->physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (error == CUDA_SUCCESS) shown.push_back({at, piece->bytes, kj::AutoCloseFd(descriptor)});
  }
  return shown;
}

CUresult DeviceLeases::copyFrom(const Shown& shown, const std::vector<LeasedRange>& ranges) {
  const uint64_t end = shown.address + shown.bytes, at = deviceArena(device) + movingPart;
  if (shown.bytes > movingPartBytes || end < shown.address) return CUDA_ERROR_INVALID_VALUE;
  CUmemGenericAllocationHandle physical;
  auto descriptor = fromWire<void*>(static_cast<uint64_t>(shown.descriptor.get()));
  CUresult error = driver.cuMemImportFromShareableHandle(&physical, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (error != CUDA_SUCCESS) return error;
  error = mapAside(shown.bytes, physical, at);
  if (error == CUDA_SUCCESS) {
    for (auto& range : ranges) {
      const uint64_t from = std::max(range.address, shown.address), to = std::min(range.address + range.bytes, end);
      if (from < to && error == CUDA_SUCCESS) error = driver.cuMemcpyDtoD_v2(from, at + (from - shown.address), to - from);
    }
    CUresult ended = driver.cuCtxSynchronize_v2(nullptr);
    if (error == CUDA_SUCCESS) error = ended;
    driver.cuMemUnmap(at, shown.bytes);
  }
  driver.cuMemRelease(physical);
  return error;
}

// Maps `by`, objects that are nowhere yet, in the place of `range`, with its bytes. What the pieces that touch the range have
// besides gets objects too. If that fails before anything is unmapped, `by` ends and all is as before.
CUresult DeviceLeases::replace(Pieces& pieces, const Range& range, Pieces by) {
  auto first = std::prev(pieces.upper_bound(range.begin)), last = pieces.lower_bound(range.end);
  const uint64_t begin = first->first, end = std::prev(last)->first + std::prev(last)->second.bytes;
  CUresult error = end - begin > movingPartBytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  auto besides = [&](uint64_t from, uint64_t to) {
    if (from == to || error != CUDA_SUCCESS) return;
    Piece rest{to - from, 0};
    error = make(rest.bytes, rest.physical);
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
  if (error != CUDA_SUCCESS) {
    for (auto& each : by) driver.cuMemRelease(each.second.physical);
    return error;
  }
  // From here on there is no way back.
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

}  // namespace vgpu::stub
