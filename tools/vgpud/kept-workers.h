// Workers that still have the session that was suspended from them (`vgpud --keep-suspended`).
//
// The snapshot of such a session is complete in pinned memory, so what its worker has on the GPUs is redundant: it is freed when another
// session of this daemon finds no GPU memory (interface SpareMemory), least recently suspended first. If it is still there when the session
// is resumed, the session goes on in that worker, and nothing is copied.
//
// Used by the event loop's thread. Must not outlive the daemon.
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
    std::string snapshot, session;  // directory of the snapshot, id of the session
    kj::Own<WorkerProcess> worker;
  };

  explicit KeptWorkers(WorkerPool& pool) : pool(pool) {}
  KJ_DISALLOW_COPY(KeptWorkers);

  // Keeps a quiesced worker, whose session has this snapshot.
  void keep(std::string snapshot, std::string session, kj::Own<WorkerProcess> worker);
  // The worker of the session with this snapshot, if it is still kept; the caller then owns it.
  kj::Maybe<kj::Own<WorkerProcess>> take(const std::string& snapshot);
  // The session has gone on elsewhere, or has ended. Resolves when the worker's memory is free; does nothing without such a worker.
  kj::Promise<void> drop(const std::string& snapshot);
  // Frees the worker whose session was suspended first. Resolves, when its memory is free, to whether there was one.
  kj::Promise<bool> freeOldest();
  // Called when the daemon ends.
  void clear() { workers.clear(); }

  const std::list<Kept>& all() const { return workers; }

 private:
  WorkerPool& pool;
  std::list<Kept> workers;  // in the order of their suspends
};

}  // namespace vgpu::daemon
