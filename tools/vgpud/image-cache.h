// The folder in which a daemon keeps module images, and what the driver compiles of them, for later runs of a program
// (docs/image-cache.md).
#pragma once

#include <string>
#include <vector>

#include "tools/vgpud/options.h"

namespace vgpu::daemon {

// The default folder: vgpu in $XDG_CACHE_HOME, else in ~/.cache, for root in /var/cache. Empty if there is none of these.
std::string defaultImageCache();

// Makes the cache's folders and lets workers of `kinds` use them. If the folder that `options` name is not for us
// alone, throws kj::Exception; where the default one is not, there is no cache, and the log says why.
void useImageCache(std::vector<WorkerKind>& kinds, const DaemonOptions& options);

}  // namespace vgpu::daemon
