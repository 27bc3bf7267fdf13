// A folder that only its owner can write to: no other user can put a file there that we would trust.
#pragma once

#include <kj/io.h>

#include <string>

namespace vgpu {

// Makes `path` (0700) with its parents if it does not exist, and opens it. Returns nothing, and sets `problem`, if it cannot be
// made, is not a folder, is a link made by another user, belongs to another user or can be written by others.
kj::Maybe<kj::AutoCloseFd> openPrivateFolder(const std::string& path, std::string& problem);

}  // namespace vgpu
