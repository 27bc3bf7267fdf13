#include "intercept/session/managed/managed-places.h"

#include <algorithm>

#include "intercept/session/call.h"

namespace vgpu::client {

namespace {

static_assert(maxDevices <= UINT8_MAX);

// Limit of a lease's runs that are sent to the worker. Finer divisions are kept by the client only.
constexpr size_t mostRuns = 4096;

unsigned arenaOf(uint64_t address) { return static_cast<unsigned>((address - deviceArenaBase) / deviceArenaBytes); }

}  // namespace

void ManagedPlaces::want(Thread& thread, ByteSpan span, const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) want(thread, span, static_cast<unsigned>(location.id), true);
}

void ManagedPlaces::want(Thread& thread, ByteSpan span, unsigned device, bool mayWait) {
  if (!inManagedPart(span.address)) return;  // pinned memory
  std::lock_guard lock(mutex);
  for (auto& [address, lease] : leases)
    if (lease.isBusy) send(thread, address, lease, false);
  auto whole = thread.session.memory.findLease(span.address);
  if (!whole) return;
  auto known = leases.find(whole->address);
  const unsigned home = arenaOf(span.address);
  if (known == leases.end()) {
    if (device == home) return;
    const Lease atHome{std::vector(whole->bytes / leaseGranularity, static_cast<uint8_t>(home))};
    known = leases.emplace(whole->address, atHome).first;
    anyMoved.store(true, std::memory_order_relaxed);  // relaxed: the program orders its frees and allocations
  }
  auto middleIn = [&](uint64_t at) { return (at - whole->address + leaseGranularity / 2) / leaseGranularity; };
  auto& devices = known->second.devices;
  auto first = devices.begin() + static_cast<ptrdiff_t>(middleIn(span.address)),
       last = devices.begin() + static_cast<ptrdiff_t>(middleIn(span.end()));
  auto isElsewhere = [&](uint8_t each) { return each != device; };
  if (std::none_of(first, last, isElsewhere)) return;
  std::fill(first, last, static_cast<uint8_t>(device));
  send(thread, known->first, known->second, mayWait);
}

void ManagedPlaces::forget(uint64_t lease) {
  std::lock_guard lock(mutex);
  leases.erase(lease);
}

std::vector<ManagedPlaces::Run> ManagedPlaces::elsewhere() {
  if (!anyMoved.load(std::memory_order_relaxed)) return {};
  std::vector<Run> runs;
  std::lock_guard lock(mutex);
  for (auto& [lease, places] : leases)
    for (size_t granule = 0; granule < places.devices.size(); ++granule) {
      const uint64_t address = lease + granule * leaseGranularity;
      const unsigned device = places.devices[granule];
      if (device == arenaOf(lease)) continue;
      if (!runs.empty() && runs.back().device == device && runs.back().address + runs.back().bytes == address)
        runs.back().bytes += leaseGranularity;
      else
        runs.push_back({address, leaseGranularity, device});
    }
  return runs;
}

// Errors are ignored: those of failed work are returned by the program's next call, and the memory is used where it is.
void ManagedPlaces::send(Thread& thread, uint64_t address, Lease& lease, bool mayWait) {
  std::vector<uint32_t> granules, devices;
  for (auto at = lease.devices.begin(); at != lease.devices.end();) {
    auto end = std::find_if(at, lease.devices.end(), [&](uint8_t device) { return device != *at; });
    granules.push_back(static_cast<uint32_t>(end - at));
    devices.push_back(*at);
    at = end;
  }
  if (granules.size() > mostRuns) return;
  const size_t words = dataWords(granules.size() * sizeof granules[0]) + dataWords(devices.size() * sizeof devices[0]);
  Call<api::Cuda::LeasePlaceParams> frame(thread.on(arenaOf(address)), api::Method::leasePlace, words);
  frame->setAddress(address);
  frame->setMayWait(mayWait);
  frame->setGranules(kj::arrayPtr(granules.data(), granules.size()));
  frame->setDevices(kj::arrayPtr(devices.data(), devices.size()));
  lease.isBusy = frame.call() == CUDA_SUCCESS && frame.results<api::Cuda::LeasePlaceResults>().getIsBusy();
}

}  // namespace vgpu::client
