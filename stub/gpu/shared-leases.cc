// Moves shared parts of leased memory to driver objects of their own, no more than necessary, and copies from memory that other processes
// have leased.
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "stub/gpu/device-leases.h"
#include "vgpu/base/ranges.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

// The parts of an allocation: its first and its last granule, unless it fills them, and what lies between; no part spans two leases.
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

// The lease that contains the address.
DeviceLeases::Lease& DeviceLeases::leaseOf(uint64_t address) { return holding(leases, address)->second; }

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
    Piece own{};
    if (CUresult error = make(range.end - range.begin, own)) return error;
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
  Piece own{};
  if (CUresult error = make(found->second.bytes, own)) return error;
  return replace(pieces, range, {{range.begin, own}});
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

}  // namespace vgpu::stub
