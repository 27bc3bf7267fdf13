// Which packs of a store are in use. A process that needs pack N unchanged holds a read lock on byte N of a file, a process that removes
// from it a write lock (open file description locks, fcntl(2)). The system releases a lock when its process ends, so a lease never outlives
// its owner and no timeout is involved.
//
// Owns the file. One thread at a time; any number of processes.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <string>

namespace vgpu {

class PackLeases {
 public:
  // `makes`: whether to create the file, as for a new store. Throws kj::Exception if the file of an existing store is missing, if it cannot
  // be opened or made, or if its file system has no such locks.
  PackLeases(const std::string& path, bool makes);

  // Takes a read lock. Returns false, at once, if another process has a write lock.
  bool take(uint64_t pack);
  // As take(), but waits for the lock.
  bool await(uint64_t pack);
  // Takes a write lock. Returns false, at once, if another process uses the pack.
  bool takeAlone(uint64_t pack);
  void release(uint64_t pack);

 private:
  bool lock(int command, short type, uint64_t pack);

  const std::string path;
  kj::AutoCloseFd file;
};

}  // namespace vgpu
