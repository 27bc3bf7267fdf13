// Snapshots with chunks in this daemon's pinned memory that are in no file: from `vgpuctl suspend --to memory`, and from --background until
// they are written.
//
// For each snapshot, owns its share of that memory, and its folder, locked: the lock tells every other process that the snapshot is
// complete as long as this daemon lives, and ends with the daemon in any case (docs/snapshot.md, In memory). Used by the event loop's
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
  // Keeps a complete snapshot; `folder` is its directory `path`, which is not removed before `others` has resolved: when it contains
  // nothing of other sessions any more. `toBeWritten`: a process will write it (background-write.h); this holds until release() or
  // writeEnded().
  void keep(const std::string& path, PinnedHold hold, kj::Own<TargetFolder> folder, kj::Promise<void> others, bool toBeWritten);
  bool has(const std::string& path) const { return snapshots.count(path) > 0; }
  // Whether it has the snapshot that was kept with `hold`; a later snapshot may have the same path.
  bool keeps(const std::string& path, const PinnedHold& hold) const {
    return hold != nullptr && has(path) && snapshots.at(path).hold == hold;
  }
  // That snapshot, or the one whose folder contains it (the two are of sessions that share); empty if neither is in memory.
  std::string around(const std::string& path) const;

  // A process begins to write the snapshot; it has failed, or will not begin.
  void writeBegun(const std::string& path, kj::Own<WorkerProcess> writer);
  void writeEnded(const std::string& path);
  bool isToBeWritten(const std::string& path) const { return has(path) && snapshots.at(path).toBeWritten; }
  // The snapshot is on disk: releases its memory and its folder.
  kj::Promise<void> release(const std::string& path);

  // The snapshot's program goes on, or has ended: releases its memory at once, and removes its files. Does nothing without such a snapshot,
  // or if it is still to be written: then it becomes an ordinary snapshot on disk.
  kj::Promise<void> remove(const std::string& path);
  // At the daemon's end, first: resolves when all writes have ended, or the remaining ones have made no progress for a minute.
  kj::Promise<void> writesEnded(kj::Timer& timer);
  // Then: ends the processes that still write.
  kj::Promise<void> stopWriters(kj::Timer& timer);
  // Then: removes the snapshots that are not on disk.
  kj::Promise<void> removeAll();

 private:
  struct Kept {
    PinnedHold hold;
    kj::Own<TargetFolder> folder;
    kj::Promise<void> others;
    bool toBeWritten;
    kj::Own<WorkerProcess> writer;  // null if no process writes it now
  };
  Kept takeOut(const std::string& path);
  kj::Promise<void> awaitWrites(kj::Timer& timer, uint64_t worked, kj::TimePoint since);
  std::map<std::string, Kept> snapshots;
};

// Whether a snapshot that was in memory is on disk by now, even if nobody has been told. Does disk I/O: for FileWork.
bool isOnDisk(const std::string& directory);

// Throws kj::Exception with a message for the person unless the daemon whose pinned memory is `pool` can resume the snapshot in
// `directory`. `wanted`: the memory that has its chunks, according to the manifest; empty if they are in files. Does disk I/O: for
// FileWork.
void requireOwnMemory(const std::string& directory, const std::string& wanted, const std::string& pool);

}  // namespace vgpu::daemon
