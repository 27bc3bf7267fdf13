// The manifest of a snapshot, printed.
#pragma once

#include <string>

namespace vgpu::ctl {

// Prints the manifest in `directory`. Its own checksum is checked, the files beside it are not. Returns the exit code.
int inspectSnapshot(const std::string& directory, bool json);

}  // namespace vgpu::ctl
