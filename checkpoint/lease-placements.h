// Where a snapshot's leases are made: managed memory that its program had moved to another device (leasePlace) is made there, because
// the device of its addresses need not have room for it.
#pragma once

#include <vector>

#include "stub/gpu/device-leases.h"
#include "stub/worker/session-state.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

// Of a lease, in order; empty if that is all on the device of its addresses, or the object is no lease.
std::vector<stub::DeviceLeases::Placement> placementsOf(const ObjectRecord& record, unsigned deviceCount);

// Before the recipes are executed.
void planLeases(stub::SessionState& on, const std::vector<ObjectRecord>& records);

}  // namespace vgpu::checkpoint
