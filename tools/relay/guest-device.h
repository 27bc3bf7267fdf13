// In a virtual machine: the device through which its host's vgpud is reached, and a slot of it for a session.
// docs/virtual-machines.md
#pragma once

#include "tools/relay/guest-stream.h"
#include "vgpu/control/endpoint.h"

namespace vgpu::relay {

// Opens the memory of the device that the endpoint names (Transport::ivshmem). Throws kj::Exception, saying what there is
// instead, or which permission is missing.
std::shared_ptr<GuestFile> openGuestDevice(const Endpoint& device);

// What a program of this machine is told of the host's GPUs: "N ptx" or "N"; waits until a vgpud serves the memory.
std::string describeHost(const GuestFile& file);

// Takes a slot, and waits until the host serves it. Throws kj::Exception if all are taken, or no vgpud serves this memory.
GuestPlace claimSlot(std::shared_ptr<GuestFile> file);
// Gives it up: the host ends the session, if it still has it.
void releaseSlot(const GuestPlace& place);

// Gives up those of processes that have ended without having done so: they were killed, or the machine was reset.
void releaseAbandoned(const GuestFile& file);

}  // namespace vgpu::relay
