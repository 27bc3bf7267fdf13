#include "checkpoint/twin-memory.h"

#include <algorithm>

#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

namespace {

// The ranges of leases that contain chunks still missing; adjacent ones are merged.
std::vector<stub::LeasedRange> wantedOf(stub::SessionState& on, const SavedChunks& saved, size_t first,
                                        const StateTables& state) {
  std::vector<stub::LeasedRange> ranges;
  for (size_t chunk = first; const auto& piece : placesOf(state)) {
    const Form form = saved.places[chunk++].form;
    if (!piece || form == Form::zero || form == Form::resident) continue;
    if (!on.of(piece->device).gpu.leases.owns(piece->address, piece->bytes)) continue;
    const bool goesOn =
        !ranges.empty() && ranges.back().device == piece->device && ranges.back().address + ranges.back().bytes == piece->address;
    if (goesOn)
      ranges.back().bytes += piece->bytes;
    else
      ranges.push_back({piece->device, piece->address, piece->bytes});
  }
  return ranges;
}

bool overlaps(const stub::LeasedRange& range, const stub::DeviceLeases::Shown& shown) {
  return range.address < shown.address + shown.bytes && shown.address < range.address + range.bytes;
}

}  // namespace

std::vector<TwinMemory> showMemory(stub::SessionState& on) {
  std::vector<TwinMemory> all;
  for (unsigned device : on.usedDevices())
    for (auto& shown : on.select(device).gpu.leases.show(mostTwinMemory))
      all.push_back({on.driver.device(device), std::move(shown)});
  on.select(0);
  std::sort(all.begin(), all.end(), [](auto& one, auto& other) { return one.shown.bytes > other.shown.bytes; });
  if (all.size() > mostTwinMemory) all.erase(all.begin() + mostTwinMemory, all.end());
  return all;
}

uint64_t takeFromTwin(stub::SessionState& on, const std::vector<TwinMemory>& twin, SavedChunks& saved, size_t first,
                      const StateTables& state) {
  const auto wanted = wantedOf(on, saved, first, state);
  bool isAny = false;
  for (auto& [gpu, shown] : twin)
    for (unsigned device : on.usedDevices()) {
      std::vector<stub::LeasedRange> ranges;
      for (auto& range : wanted)
        if (range.device == device && overlaps(range, shown)) ranges.push_back(range);
      if (ranges.empty() || on.driver.device(device) != gpu) continue;
      isAny |= on.select(device).gpu.leases.copyFrom(shown, ranges) == CUDA_SUCCESS;
    }
  on.select(0);
  return isAny ? markResident(on, saved, first, state) : 0;
}

}  // namespace vgpu::checkpoint
