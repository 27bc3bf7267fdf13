// Removing what a program has written.
#pragma once

#include <string>

namespace vgpu::daemon {

// Removes all that is in the folder behind descriptor `folder` but the file `last`, and then that. Follows no link, and
// holds few descriptors however deep folders are nested. Waits for the disk. Empty; else what cannot be removed, and
// why: the rest is gone then, and `last` is there.
std::string emptyFolder(int folder, const std::string& last);

}  // namespace vgpu::daemon
