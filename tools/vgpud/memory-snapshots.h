// Snapshots whose chunks are in this daemon's pinned memory and in no file: `vgpuctl suspend --to memory`, and --background until
// they are written.
//
// Owns, of each, what it holds of that memory, and its folder, locked: the lock says to every other process that the snapshot is
// whole as long as this daemon lives, and ends with it, however that ends (docs/snapshot.md, In memory). Of the event loop's
// thread.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <map>
#include <string>

#include "tools/common/file-work.h"
#include "tools/vgpud/pinned-pool.h"
#include "tools/vgpud/target-folder.h"
#include "tools/vgpud/worker-process.h"

namespace vgpu::daemon {

class MemorySnapshots {
 public:
  // A snapshot that is complete; `folder` is its directory `path`. `others` resolves when nothing of other sessions is in that any more:
  // until then it is not removed. `toBeWritten`: by a process (background-write.h), until one of release() and writeEnded().
  void keep(const std::string& path, PinnedHold hold, kj::Own<TargetFolder> folder, kj::Promise<void> others, bool toBeWritten);
  bool has(const std::string& path) const { return snapshots.count(path) > 0; }
  // Whether it has the one that was kept with `hold`: another one may be at that path since.
  bool keeps(const std::string& path, const PinnedHold& hold) const {
    return hold != nullptr && has(path) && snapshots.at(path).hold == hold;
  }
  // That snapshot, or the one in whose folder it is, because the two are of sessions that share; empty if neither is in memory.
  std::string around(const std::string& path) const;

  // That process has begun; it has failed, or is not to begin.
  void writeBegun(const std::string& path, kj::Own<WorkerProcess> writer);
  void writeEnded(const std::string& path);
  bool isToBeWritten(const std::string& path) const { return has(path) && snapshots.at(path).toBeWritten; }
  // It is on disk: lets its memory and its folder go.
  kj::Promise<void> release(const std::string& path);

  // Its program goes on, or has ended: lets its memory go at once, and removes its files. Nothing to do without one, or if it is
  // to be written: then it becomes one like any other.
  kj::Promise<void> remove(const std::string& path);
  // The daemon ends. First: resolves when nobody writes any more, or when those who do have done nothing for a minute.
  kj::Promise<void> writesEnded(kj::Timer& timer);
  // Then: ends whoever still writes.
  kj::Promise<void> stopWriters(kj::Timer& timer);
  // Then: removes what is not on disk.
  kj::Promise<void> removeAll();

 private:
  struct Kept {
    PinnedHold hold;
    kj::Own<TargetFolder> folder;
    kj::Promise<void> others;
    bool toBeWritten;
    kj::Own<WorkerProcess> writer;  // null if nobody writes it now
  };
  Kept takeOut(const std::string& path);
  kj::Promise<void> awaitWrites(kj::Timer& timer, uint64_t worked, kj::TimePoint since);
  std::map<std::string, Kept> snapshots;
};

// Whether a snapshot that was in memory is on disk, whoever has been told of that. Work on files.
bool isOnDisk(const std::string& directory);

// Throws kj::Exception, for a person, unless a snapshot in `directory` can be resumed by the daemon whose pinned memory is
// `pool`. `wanted`: the memory that it says its chunks are in; empty if they are in files. Work on files.
void requireOwnMemory(const std::string& directory, const std::string& wanted, const std::string& pool);

}  // namespace vgpu::daemon
