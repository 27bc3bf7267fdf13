// Snapshots whose chunks are in this daemon's pinned memory and in no file: `vgpuctl suspend --to memory`.
//
// Owns, of each, what it holds of that memory, and its folder, locked: the lock says to every other process that the snapshot is whole as
// long as this daemon lives, and ends with it, however that ends (docs/snapshot.md, In memory). Of the event loop's thread.
#pragma once

#include <kj/async.h>

#include <map>
#include <string>

#include "tools/common/file-work.h"
#include "tools/vgpud/pinned-pool.h"
#include "tools/vgpud/target-folder.h"

namespace vgpu::daemon {

class MemorySnapshots {
 public:
  // A snapshot that is complete; `folder` is its directory `path`.
  void keep(const std::string& path, PinnedHold hold, kj::Own<TargetFolder> folder);
  bool has(const std::string& path) const { return snapshots.count(path) > 0; }
  uint64_t bytesOf(const std::string& path) const;

  // Its program goes on, or has ended: lets its memory go at once, and removes its files. Nothing to do without one.
  kj::Promise<void> remove(const std::string& path);
  kj::Promise<void> removeAll();

 private:
  struct Kept {
    PinnedHold hold;
    kj::Own<TargetFolder> folder;
  };
  std::map<std::string, Kept> snapshots;
};

// Throws kj::Exception, for a person, unless a snapshot in `directory` can be resumed by the daemon whose pinned memory is `pool`. `wanted`:
// the memory that it says its chunks are in; empty if they are in files. Work on files.
void requireOwnMemory(const std::string& directory, const std::string& wanted, const std::string& pool);

}  // namespace vgpu::daemon
