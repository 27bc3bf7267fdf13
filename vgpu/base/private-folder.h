// A folder that its owner alone can write: nobody else can put a file there that we would believe.
#pragma once

#include <kj/io.h>

#include <string>

namespace vgpu {

// Makes `path` (0700) with its parents where it is not there, and opens it. Where it cannot be made, is no folder, is a
// link that another user made, belongs to another user or can be written by others: nothing, and `problem` says why.
kj::Maybe<kj::AutoCloseFd> openPrivateFolder(const std::string& path, std::string& problem);

}  // namespace vgpu
