// A private copy of an object list's file, for a reader that must neither trust the program that writes it nor change its folder.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <string>

namespace vgpu {

// A memfd with the bytes of DIRECTORY/objects/data.mdb as they were at one commit. Follows no link below `directory`, and writes
// nothing there. Throws kj::Exception if it does not exist, is not a plain file, is larger than `mostBytes`, or changed during
// every attempt to copy it.
kj::AutoCloseFd copyObjectList(const std::string& directory, uint64_t mostBytes);

}  // namespace vgpu
