// Removing a snapshot that is whole.
#pragma once

#include <string>

namespace vgpu::daemon {

// Removes the snapshot in `directory` if it is one of session `id` and nobody holds it. Whoever is killed here leaves one that says that
// it is unfinished. Work on files.
void removeSnapshotOf(const std::string& id, const std::string& directory);

}  // namespace vgpu::daemon
