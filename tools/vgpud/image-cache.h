// The folder in which a daemon keeps module images, and the driver's compiled code for them, for later runs of a program
// (docs/image-cache.md).
#pragma once

#include <string>
#include <vector>

#include "tools/vgpud/options.h"

namespace vgpu::daemon {

// The default folder: vgpu in $XDG_CACHE_HOME, else in ~/.cache; for root in /var/cache. Empty if none of these exists.
std::string defaultImageCache();

// Makes the cache's folders and lets workers of `kinds` use them. Throws kj::Exception if the folder that `options` name is not private to
// us; if the default folder is not, there is no cache, and the log says why.
void useImageCache(std::vector<WorkerKind>& kinds, const DaemonOptions& options);

}  // namespace vgpu::daemon
