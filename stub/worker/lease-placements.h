// Managed memory that the program wants in memory of another device than that of its addresses (leasePlace): moved there while the
// session runs, and made there by a resume, because the device of its addresses need not have room for it.
#pragma once

#include <vector>

#include "cuda-frames.h"
#include "stub/gpu/device-leases.h"
#include "stub/worker/session-state.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::stub {

using Placements = std::vector<DeviceLeases::Placement>;

// Of a session with so many devices. None if the frame names another one, or not one for each run.
Placements placementsIn(const api::FrameReader<api::Cuda::LeasePlaceParams>& frame, unsigned deviceCount);
// The last that the object's recipe has; empty if it has none.
Placements placementsOf(const ObjectRecord& record, unsigned deviceCount);

// Moves what of a lease is elsewhere, on the thread of its GPU. A wish: what there is no room for stays. CUDA's answer:
// CUDA_ERROR_NOT_READY if GPUs have work; mayWait: and still have it a moment later.
CUresult place(Execution& on, uint64_t lease, const Placements& placements, bool mayWait);

// Before the recipes of a snapshot are executed: where they make leases.
void planLeases(SessionState& session, const std::vector<ObjectRecord>& records);

}  // namespace vgpu::stub
