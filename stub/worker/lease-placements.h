// Managed memory whose preferred location is another device than that of its addresses (leasePlace): moved there while the session runs,
// and created there by a resume, because the device of its addresses may have no room for it.
#pragma once

#include <vector>

#include "cuda-frames.h"
#include "stub/gpu/device-leases.h"
#include "stub/worker/session-state.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::stub {

using Placements = std::vector<DeviceLeases::Placement>;

// Reads a frame of a session with `deviceCount` devices. Empty if the frame names another device, or not one device for each run.
Placements placementsIn(const api::FrameReader<api::Cuda::LeasePlaceParams>& frame, unsigned deviceCount);
// The last placements in the object's recipe; empty if it has none.
Placements placementsOf(const ObjectRecord& record, unsigned deviceCount);

// Moves the misplaced parts of a lease, on the thread of its GPU. The location is a preference: what the other device has no room for
// stays. CUDA's result: CUDA_ERROR_NOT_READY if GPUs have work; with mayWait, if they still have some 100 ms later.
CUresult place(Execution& on, uint64_t lease, const Placements& placements, bool mayWait);

// Before the recipes of a snapshot are executed: tells each device's leases where to create their memory.
void planLeases(SessionState& session, const std::vector<ObjectRecord>& records);

}  // namespace vgpu::stub
