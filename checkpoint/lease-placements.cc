#include "checkpoint/lease-placements.h"

#include <algorithm>

#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

std::vector<stub::DeviceLeases::Placement> placementsOf(const ObjectRecord& record, unsigned deviceCount) {
  std::vector<stub::DeviceLeases::Placement> placements;
  for (auto& frame : record.recipe) {
    if (frame.method != api::Method::leasePlace) continue;
    const api::FrameReader<api::Cuda::LeasePlaceParams> params(frame.words);
    auto granules = params.getGranules(), devices = params.getDevices();
    placements.clear();
    for (unsigned i = 0; i < std::min(granules.size(), devices.size()); ++i)
      if (devices[i] < deviceCount) placements.push_back({granules[i] * leaseGranularity, devices[i]});
  }
  return placements;
}

void planLeases(stub::SessionState& on, const std::vector<ObjectRecord>& records) {
  for (auto& record : records)
    if (auto placements = placementsOf(record, on.deviceCount()); !placements.empty())
      on.of(record.recipe.front().device).gpu.leases.plan(record.id.handle, std::move(placements));
}

}  // namespace vgpu::checkpoint
