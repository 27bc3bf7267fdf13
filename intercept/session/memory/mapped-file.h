// A file that this process has mapped and shares with other processes: of /dev/shm, a memfd, memory that a parent has mapped for its
// children, or any file that it only reads.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <optional>

namespace vgpu::client {

struct MappedFile {
  kj::AutoCloseFd file;  // a new descriptor: readable, and writable if the mapping is
  uint64_t offset;       // of the range in the file, in bytes
  bool isWritable;       // whether this process may write through its mapping
};

// Nothing if [address, address + bytes) is not one consecutive part of one file, or if the file cannot be opened: a file without a name
// that is not open in this process needs the privilege to follow /proc/self/map_files.
std::optional<MappedFile> findMappedFile(uint64_t address, uint64_t bytes);

}  // namespace vgpu::client
