// How much space a file system has free, for messages about failed writes.
#pragma once

#include <cstdint>
#include <string>

namespace vgpu {

// Returns 0 also if the file system cannot be queried. `path`: a file or folder, or one that is to be made in an existing folder.
uint64_t freeBytesAt(const std::string& path);

// Why `wantedBytes` (0: unknown) could not be written to `path`, as a message. For a full disk, also how much is free and what to do.
std::string writeProblem(int error, const std::string& path, uint64_t wantedBytes = 0);

}  // namespace vgpu
