// Replaces the manifest of an existing snapshot atomically, when what was in memory has been written to disk.
#pragma once

#include <string>

namespace vgpu::snapshot {

// Syncs the other files of the snapshot in `directory`, then replaces its manifest by this text: readers find the old manifest or the new
// one. Throws kj::Exception that names the file and the system's reason; the old manifest is unchanged then.
void replaceManifest(const std::string& directory, const std::string& text);

}  // namespace vgpu::snapshot
