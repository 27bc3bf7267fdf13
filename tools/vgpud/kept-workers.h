// Workers that still have the session that was suspended from them: `vgpud --keep-suspended`.
//
// Such a session's snapshot is in pinned memory and whole, so what its worker has on the GPUs is spare: it goes when another
// session of this daemon finds no memory there (interface SpareMemory), the one that was suspended first before others. If it is
// still there when the session is resumed, the session goes on in that worker, and nothing is copied.
//
// Of the event loop's thread. Does not outlive the daemon.
#pragma once

#include <kj/async.h>

#include <list>
#include <string>

#include "tools/vgpud/worker-process.h"

namespace vgpu::daemon {

class WorkerPool;

class KeptWorkers {
 public:
  struct Kept {
    std::string snapshot, session;  // the snapshot's directory, the session's id
    kj::Own<WorkerProcess> worker;
  };

  explicit KeptWorkers(WorkerPool& pool) : pool(pool) {}
  KJ_DISALLOW_COPY(KeptWorkers);

  // One that is quiesced, and whose session has this snapshot.
  void keep(std::string snapshot, std::string session, kj::Own<WorkerProcess> worker);
  // That of the session with this snapshot, if it is still there: the caller's from here on.
  kj::Maybe<kj::Own<WorkerProcess>> take(const std::string& snapshot);
  // Its session has gone on elsewhere, or has ended. Resolves when its memory is free; nothing to do without one.
  kj::Promise<void> drop(const std::string& snapshot);
  // The one that was suspended first. Resolves to whether there was one, when its memory is free.
  kj::Promise<bool> freeOldest();
  // The daemon ends.
  void clear() { workers.clear(); }

  const std::list<Kept>& all() const { return workers; }

 private:
  WorkerPool& pool;
  std::list<Kept> workers;  // the one that was suspended first, first
};

}  // namespace vgpu::daemon
