// Size and checksum of a file.
#pragma once

#include <kj/io.h>

#include <string>

#include "vgpu/snapshot/checksum.h"

namespace vgpu::snapshot {

// Opens a plain file, without following a link. Throws kj::Exception if there is none.
kj::AutoCloseFd openPlainFile(const std::string& path);
// Of the whole content.
FileSum sumOf(int file, const std::string& path);
// Syncs the file to disk first.
FileSum sumOnDisk(const std::string& path);

}  // namespace vgpu::snapshot
