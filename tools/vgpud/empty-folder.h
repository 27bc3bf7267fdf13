// Removing a folder that a program has written to.
#pragma once

#include <string>

namespace vgpu::daemon {

// Removes all that is in the folder behind descriptor `folder` but the file `last`, and then that. Follows no link, and holds few
// descriptors however deep folders are nested. Waits for the disk. Returns an empty text; else what cannot be removed, and why:
// then the rest has been removed, and `last` is kept.
std::string emptyFolder(int folder, const std::string& last);

}  // namespace vgpu::daemon
