// The exclusive lock of a snapshot's directory: held by the process that writes the snapshot, and by a daemon whose memory has chunks of
// it.
#pragma once

#include <string>

namespace vgpu::snapshot {

// Whether a process holds the lock. False also if the directory cannot be opened.
bool isHeld(const std::string& directory);

}  // namespace vgpu::snapshot
