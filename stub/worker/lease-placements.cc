#include "stub/worker/lease-placements.h"

#include <chrono>

#include "stub/worker/execution.h"

namespace vgpu::stub {

namespace {

// The GPUs' threads are stopped during the wait.
constexpr std::chrono::milliseconds moment(100), none(0);

}  // namespace

Placements placementsIn(const api::FrameReader<api::Cuda::LeasePlaceParams>& frame, unsigned deviceCount) {
  auto granules = frame.getGranules(), devices = frame.getDevices();
  if (granules.size() != devices.size()) return {};
  Placements placements;
  for (unsigned i = 0; i < granules.size(); ++i) {
    if (devices[i] >= deviceCount) return {};
    placements.push_back({granules[i] * leaseGranularity, devices[i]});
  }
  return placements;
}

Placements placementsOf(const ObjectRecord& record, unsigned deviceCount) {
  Placements last;
  for (auto& frame : record.recipe)
    if (frame.method == api::Method::leasePlace)
      last = placementsIn(api::FrameReader<api::Cuda::LeasePlaceParams>(frame.words), deviceCount);
  return last;
}

CUresult place(Execution& on, uint64_t lease, const Placements& placements, bool mayWait) {
  for (auto& placement : placements)
    if (CUresult error = on.session.use(placement.device)) return error;
  auto moves = on.gpu.leases.findMoves(lease, placements);
  if (!moves) return CUDA_ERROR_INVALID_VALUE;
  if (moves->empty()) return CUDA_SUCCESS;
  CUresult result = on.session.moveWhileIdle(on, [&] { return on.gpu.leases.move(*moves); }, mayWait ? moment : none);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
}

void planLeases(SessionState& session, const std::vector<ObjectRecord>& records) {
  for (auto& record : records)
    if (auto placements = placementsOf(record, session.deviceCount()); !placements.empty())
      session.of(record.recipe.front().device).gpu.leases.plan(record.id.handle, std::move(placements));
}

}  // namespace vgpu::stub
