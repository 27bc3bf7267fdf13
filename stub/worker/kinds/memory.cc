// Device and pinned memory. The client allocates within what it has leased; the handle of an allocation is its address.
#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

CUresult memAlloc(Execution& on, const api::FrameReader<api::Cuda::MemAllocParams>& p, Reply&) {
  if (!on.gpu.leases.owns(p.getAddress(), p.getBytes())) return CUDA_ERROR_INVALID_VALUE;
  on.handles.add(api::Kind::MEMORY, p.getAddress(), p.getBytes());
  if (on.driver.noteAllocation != nullptr) on.driver.noteAllocation(p.getAddress(), p.getBytes(), "cudaMalloc");
  return CUDA_SUCCESS;
}

CUresult memFree(Execution& on, const api::FrameReader<api::Cuda::MemFreeParams>& p, Reply&) {
  const uint64_t bytes = on.handles.take(api::Kind::MEMORY, p.getAddress());
  if (on.driver.forgetAllocation != nullptr) on.driver.forgetAllocation(p.getAddress());
  if (!on.session.sharedNames.has(api::Kind::MEMORY, p.getAddress())) return CUDA_SUCCESS;
  on.session.endSharing(api::Kind::MEMORY, p.getAddress());
  return on.session.moveWhileIdle(on, [&] { return on.gpu.leases.unshare(p.getAddress(), bytes); });
}

CUresult hostAlloc(Execution& on, const api::FrameReader<api::Cuda::HostAllocParams>& p, Reply&) {
  if (!on.session.hostLeases.owns(p.getAddress(), p.getBytes())) return CUDA_ERROR_INVALID_VALUE;
  on.handles.add(api::Kind::HOST_MEMORY, p.getAddress(), p.getBytes());
  return CUDA_SUCCESS;
}

CUresult hostFree(Execution& on, const api::FrameReader<api::Cuda::HostFreeParams>& p, Reply&) {
  on.handles.take(api::Kind::HOST_MEMORY, p.getAddress());
  return CUDA_SUCCESS;
}

namespace {

// A row: adjacent live allocations of one device, joined.
struct Range {
  uint64_t device = 0, address = 0, bytes = 0;
  auto operator<=>(const Range&) const = default;
};
Range rangeOf(const Row& row) { return {numberIn(row, 0), numberIn(row, 1), numberIn(row, 2)}; }

// Sizes are rounded up to the alignment of 512 bytes, so that small allocations that lie side by side join.
Rows save(SessionState& session) {
  std::vector<Range> ranges, joined;
  for (unsigned device = 0; device < session.deviceCount(); ++device) {
    Execution& on = session.of(device);
    for (auto [address, bytes] : on.handles.of(api::Kind::MEMORY)) {
      uint64_t whole = roundUp(bytes, allocationAlignment);
      ranges.push_back({device, address, on.gpu.leases.owns(address, whole) ? whole : bytes});
    }
  }
  std::ranges::sort(ranges);
  for (auto& range : ranges) {
    if (!joined.empty() && joined.back().device == range.device &&
        range.address <= joined.back().address + joined.back().bytes) {
      auto& last = joined.back();
      last.bytes = std::max(last.address + last.bytes, range.address + range.bytes) - last.address;
    } else if (range.bytes > 0) {
      joined.push_back(range);
    }
  }
  Rows rows;
  for (auto& range : joined) rows.push_back({range.device, range.address, range.bytes});
  return rows;
}

bool isValid(const Row& row, uint64_t devices) {
  Range range = rangeOf(row);
  return range.device < devices && range.bytes > 0 && range.bytes <= deviceArenaBytes &&
         range.address <= std::numeric_limits<uint64_t>::max() - range.bytes;
}

void compare(SessionState& session, const Rows& rows) {
  for (auto& row : rows) {
    Range range = rangeOf(row);
    if (range.device >= session.deviceCount() || !session.ownsMemory(range.address, range.bytes))
      fail(fmt::format("{} bytes at {:#x} of device {} belong to no object of the snapshot", range.bytes, range.address,
                       range.device));
  }
}

uint64_t bytes(const Row& row) { return rangeOf(row).bytes; }
unsigned device(const Row& row) { return static_cast<unsigned>(numberIn(row, 0)); }
uint64_t address(const Row& row) { return numberIn(row, 1); }

void read(SessionState& session, const Row& row, uint64_t offset, std::byte* out, size_t bytes) {
  readDevice(session, device(row), address(row) + offset, out, bytes);
}

void write(SessionState& session, const Row& row, uint64_t offset, const std::byte* in, size_t bytes) {
  writeDevice(session, device(row), address(row) + offset, in, bytes);
}

}  // namespace

// No drop(): allocations outlive a device's context, because the program still frees them.
const KindModule memoryKind{.name = "memory",
                            .columns = "nnn",
                            .isValid = isValid,
                            .save = save,
                            .compare = compare,
                            .bytes = bytes,
                            .device = device,
                            .address = address,
                            .read = read,
                            .write = write};

}  // namespace vgpu::stub
