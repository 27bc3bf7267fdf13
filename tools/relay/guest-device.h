// The guest's side: the device through which a virtual machine reaches its host's vgpud, and a slot in it for a session.
// docs/virtual-machines.md
#pragma once

#include "tools/relay/guest-stream.h"
#include "vgpu/control/endpoint.h"

namespace vgpu::relay {

// Opens the memory of the device that the endpoint names (Transport::ivshmem). Throws kj::Exception, saying which devices exist instead, or
// which permission is missing.
std::shared_ptr<GuestFile> openGuestDevice(const Endpoint& device);

// Describes the host's GPUs for programs of this machine: "N ptx" or "N"; waits until a vgpud serves the memory.
std::string describeHost(const GuestFile& file);

// Takes a slot, and waits until the host serves it. Throws kj::Exception if all are taken, or no vgpud serves this memory.
GuestPlace claimSlot(std::shared_ptr<GuestFile> file);
// Releases the slot: the host ends the session, if it still exists.
void releaseSlot(const GuestPlace& place);

// Releases slots of processes that have ended without doing so: they were killed, or the machine was reset.
void releaseAbandoned(const GuestFile& file);

}  // namespace vgpu::relay
