// What a file system has free, said where something could not be written.
#pragma once

#include <cstdint>
#include <string>

namespace vgpu {

// Nothing free also if it cannot be looked at. `path`: of a file or folder there, or of one that is to be made in a folder there.
uint64_t freeBytesAt(const std::string& path);

// Why `wantedBytes` could not be written to `path`, for a person; 0: it is unknown how many. Of a full disk also how much is
// free, and what to do.
std::string writeProblem(int error, const std::string& path, uint64_t wantedBytes = 0);

}  // namespace vgpu
