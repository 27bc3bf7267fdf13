// The file whose memory this process has mapped and shares with other processes: of /dev/shm, a memfd, what a parent has mapped for its
// children, or any file that it only reads.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <optional>

namespace vgpu::client {

struct MappedFile {
  kj::AutoCloseFd file;  // opened once more: to read, and to write if it is mapped so
  uint64_t offset;       // where in it the range begins, in bytes
  bool isWritable;       // by this process, through that mapping
};

// Nothing if not all of [address, address + bytes) is of one file, in its order, or the file cannot be opened: one that has no name any
// more and is open nowhere in this process only with the privilege to follow /proc/self/map_files.
std::optional<MappedFile> findMappedFile(uint64_t address, uint64_t bytes);

}  // namespace vgpu::client
