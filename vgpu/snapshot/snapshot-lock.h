// The lock of a snapshot's directory: held, alone, by who writes a snapshot, and by the daemon whose memory has chunks of it.
#pragma once

#include <string>

namespace vgpu::snapshot {

// Whether a process holds it. False as well if the directory cannot be opened.
bool isHeld(const std::string& directory);

}  // namespace vgpu::snapshot
