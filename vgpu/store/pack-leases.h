// Which packs of a store somebody uses. Byte N of a file is locked for reading by who needs pack N as it is, and for writing by who removes
// from it (open file description locks, fcntl(2)): the system ends a lock with the process that holds it, so a lease never outlives its owner
// and no clock is involved.
//
// Owns the file. One thread at a time; any number of processes.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <string>

namespace vgpu {

class PackLeases {
 public:
  // `makes`: of a store that is new. Throws kj::Exception if the file is missing in another one, cannot be opened or made, or its
  // file system has no such locks.
  PackLeases(const std::string& path, bool makes);

  // False, at once, if another process has it alone.
  bool take(uint64_t pack);
  // The same, but waits until it can have it.
  bool await(uint64_t pack);
  // False, at once, if another process uses it.
  bool takeAlone(uint64_t pack);
  void release(uint64_t pack);

 private:
  bool lock(int command, short type, uint64_t pack);

  const std::string path;
  kj::AutoCloseFd file;
};

}  // namespace vgpu
