// Which GPUs a session has seen, and whether those of another worker can take their place.
#pragma once

#include <vector>

#include "vgpu/snapshot/manifest.h"
#include "stub/worker/session-state.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// Of every device of the worker, with its clock.
std::vector<Device> devicesOf(stub::SessionState& on);

// Throws kj::Exception where a device that the session saw is missing here or is another model: the program has been
// told its limits and made decisions by them.
void requireSameDevices(const std::vector<Device>& seen, const std::vector<Device>& here);

}  // namespace vgpu::checkpoint
