// The mappings of this process, as the kernel lists them.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace vgpu::client {

// A line of /proc/self/maps.
struct MappedRange {
  uint64_t start = 0, end = 0, offset = 0;  // offset: in the file
  dev_t device = 0;
  ino_t inode = 0;     // 0: not a file
  char mode[5] = "";   // "rw-s"
  std::string name;    // the file's path, or a name such as "[stack]"; may be empty

  bool isReadable() const { return mode[0] == 'r'; }
  bool isWritable() const { return mode[1] == 'w'; }
  bool isShared() const { return mode[3] == 's'; }
  // As PROT_… flags.
  int protection() const {
    return (mode[0] == 'r' ? PROT_READ : 0) | (mode[1] == 'w' ? PROT_WRITE : 0) | (mode[2] == 'x' ? PROT_EXEC : 0);
  }
};

// Calls `visit` for each mapping that intersects [address, address + bytes), in order.
void forEachMapping(uint64_t address, uint64_t bytes, const std::function<void(const MappedRange&)>& visit);

}  // namespace vgpu::client
