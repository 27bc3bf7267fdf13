// Removes a folder that a program has written to.
#pragma once

#include <string>

namespace vgpu::daemon {

// Removes everything in the folder open as `folder` except the file `last`, and then that file. Follows no link, and holds few descriptors
// however deeply folders are nested. Does disk I/O. Returns an empty text, or what cannot be removed and why: in that case everything else
// has been removed, and `last` is kept.
std::string emptyFolder(int folder, const std::string& last);

}  // namespace vgpu::daemon
