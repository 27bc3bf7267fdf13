// A private copy of an object list's file, for a reader that must neither trust the program that writes it nor change
// what is in its folder.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <string>

namespace vgpu {

// An unnamed file in memory with the bytes of DIRECTORY/objects/data.mdb as they were at one commit. Follows no link that
// is below `directory`, and writes nothing there. Throws kj::Exception: not there, no plain file, larger than `mostBytes`,
// or changed by the program each time that it was copied.
kj::AutoCloseFd copyObjectList(const std::string& directory, uint64_t mostBytes);

}  // namespace vgpu
