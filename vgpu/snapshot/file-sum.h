// The sum of a file that is to be kept.
#pragma once

#include <kj/io.h>

#include <string>

#include "vgpu/snapshot/checksum.h"

namespace vgpu::snapshot {

// A plain file, without following a link. Throws kj::Exception if there is none.
kj::AutoCloseFd openPlainFile(const std::string& path);
// Of all that is in it.
FileSum sumOf(int file, const std::string& path);
// The same, when the file is on disk.
FileSum sumOnDisk(const std::string& path);

}  // namespace vgpu::snapshot
