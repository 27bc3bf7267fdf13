// Which GPUs a session has seen, and which of another worker's can take their place.
//
// A program keeps what it was told of its devices when it began: names, properties, identity. What GPU they are may change; what
// it has used of them must be there (stub/worker/kinds/function.cc, launches; recipes for all else).
#pragma once

#include <span>
#include <vector>

#include "vgpu/snapshot/manifest.h"
#include "stub/worker/session-state.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// As the program has first seen them, with their clocks.
std::vector<Device> devicesOf(stub::SessionState& on);

// In a list of `devices` by the session's: one that is not named.
constexpr uint32_t notMapped = ~uint32_t{0};
// UUIDs of all of the driver's devices, as a snapshot has them.
std::vector<std::string> uuidsOf(const stub::Driver& driver);
// The driver's devices, whose UUIDs are `here`, that become those of the session in `directory`, in its order: those that a person has
// named in `wanted`, by device of the session; else the one that it was made on, if that is here; else the one of its number.
// Throws kj::Exception, for a person, if one that the session uses gets none, or one is named that is not there.
std::vector<CUdevice> chooseDevices(const SnapshotReader& directory, std::span<const uint32_t> wanted, std::span<const std::string> here);

// Throws kj::Exception, for a person, if a session with these objects has more memory than its GPUs here, or if these do not reach
// each other's managed memory. The session has those devices from here on.
void adoptDevices(stub::SessionState& on, const std::vector<Device>& seen, const std::vector<ObjectRecord>& records);

}  // namespace vgpu::checkpoint
