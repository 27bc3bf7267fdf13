// The manifest of a snapshot that is there, replaced as a whole: when what was in memory has come to disk.
#pragma once

#include <string>

namespace vgpu::snapshot {

// Syncs the other files of the snapshot in `directory`, then puts a manifest of this text in the place of its own: whoever reads
// it finds the old one or this. Throws kj::Exception that names the file and the system's reason; the old one is there then.
void replaceManifest(const std::string& directory, const std::string& text);

}  // namespace vgpu::snapshot
