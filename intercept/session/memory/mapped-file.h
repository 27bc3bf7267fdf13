// The file whose memory this process has mapped, shared and writable, as other processes may have it too: /dev/shm, a memfd, or what a
// parent has mapped for its children.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <optional>

namespace vgpu::client {

struct MappedFile {
  kj::AutoCloseFd file;  // opened once more, to read and to write
  uint64_t offset;       // where in it the range begins, in bytes
};

// Nothing if not all of [address, address + bytes) is of one file, in its order, or the file cannot be opened: one that has no name any
// more and is open nowhere in this process only with the privilege to follow /proc/self/map_files.
std::optional<MappedFile> findMappedFile(uint64_t address, uint64_t bytes);

}  // namespace vgpu::client
