// Which GPUs a session has seen, and which GPUs of another worker can replace them.
//
// A program keeps what it read about its devices at its start: names, properties, identity. The GPUs behind them may change, but what the
// program has used must be available (stub/worker/kinds/function.cc, launches; recipes for everything else).
#pragma once

#include <span>
#include <vector>

#include "vgpu/snapshot/manifest.h"
#include "stub/worker/session-state.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// The devices as the program first saw them, with their clocks.
std::vector<Device> devicesOf(stub::SessionState& on);

// In a list of `devices` indexed by the session's devices: no device was named.
constexpr uint32_t notMapped = ~uint32_t{0};
// UUIDs of all of the driver's devices, in a snapshot's format.
std::vector<std::string> uuidsOf(const stub::Driver& driver);
// Chooses the driver's devices (their UUIDs are `here`) for the devices of the session in `directory`, in its order: the device that the
// person has named in `wanted`, by device of the session; else the device on which the session was made, if it is here; else the one with
// the same number. Throws kj::Exception with a message for the person if a device that the session uses gets none, or a named device does
// not exist.
std::vector<CUdevice> chooseDevices(const SnapshotReader& directory, std::span<const uint32_t> wanted, std::span<const std::string> here);

// Throws kj::Exception with a message for the person if a session with these objects has more memory than its GPUs here, or if these cannot
// access each other's managed memory. The session has those devices from here on.
void adoptDevices(stub::SessionState& on, const std::vector<Device>& seen, const std::vector<ObjectRecord>& records);

}  // namespace vgpu::checkpoint
