// The content of a session's pinned memory, stored beside its snapshot: for sessions in a virtual machine's memory, whose processes on this
// host end when the machine has been saved (docs/virtual-machines.md).
//
//   "vgpuarna" (8) · version (8) · pieces: [offset (8) · bytes (8) · the bytes]… · 0 (8) · 0 (8) · XXH3-128 of all before, 32 digits
//
// Numbers are little endian. Does disk I/O: call it off the event loop.
#pragma once

#include <string>

namespace vgpu::daemon {

constexpr const char* hostArenaFile = "host-arena";  // in the snapshot's directory

// Throws kj::Exception if the file cannot be written, or exists.
void saveHostArena(int arena, const std::string& directory);
// Loads the file into an empty arena. Throws kj::Exception if it is incomplete, or has been changed.
void loadHostArena(const std::string& directory, int arena);

}  // namespace vgpu::daemon
