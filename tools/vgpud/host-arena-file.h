// What a session has of pinned memory, beside its snapshot: of one in a virtual machine's memory, whose processes on this host
// end when the machine has been saved (docs/virtual-machines.md).
//
//   "vgpuarna" (8) · version (8) · pieces: [offset (8) · bytes (8) · these]… · 0 (8) · 0 (8) · XXH3-128 of all before, 32 digits
//
// Numbers are little endian. Waits for the disk: off the event loop.
#pragma once

#include <string>

namespace vgpu::daemon {

constexpr const char* hostArenaFile = "host-arena";  // in the snapshot's directory

// Throws kj::Exception if it cannot be written, or is there.
void saveHostArena(int arena, const std::string& directory);
// Into an arena that has nothing. Throws kj::Exception if it is not all there, or has been changed.
void loadHostArena(const std::string& directory, int arena);

}  // namespace vgpu::daemon
