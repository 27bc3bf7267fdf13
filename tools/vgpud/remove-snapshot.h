// Removes a complete snapshot.
#pragma once

#include <string>

namespace vgpu::daemon {

// Removes the snapshot in `directory` if it is one of session `id` and no process has locked it. If this process is killed meanwhile, the
// rest is marked as unfinished. Does disk I/O: for FileWork.
void removeSnapshotOf(const std::string& id, const std::string& directory);

}  // namespace vgpu::daemon
