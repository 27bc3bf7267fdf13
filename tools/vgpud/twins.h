// Tracks which workers have device memory of the same snapshot. A session that is resumed copies what such a twin still has, on the GPU
// (checkpoint/twin-memory.h); so copies of a program (`vgpuctl clone`) read the snapshot's files once, or not at all.
//
// Used by the event loop's thread.
#pragma once

#include <kj/async.h>
#include <sys/types.h>

#include <list>
#include <string>

#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class Sessions;

class Twins {
 public:
  explicit Twins(Sessions& sessions) : sessions(sessions) {}
  KJ_DISALLOW_COPY(Twins);

  // Registers a worker that is being restored from the snapshot in `directory`, as long as this object lives.
  class Restoration {
   public:
    Restoration(Twins& twins, std::string directory, uid_t user);
    ~Restoration();
    KJ_DISALLOW_COPY(Restoration);

    // A worker of the same user that has memory of this snapshot: of a running session, or of a session whose restore began before this
    // one, once that is done. Nothing if there is none.
    kj::Promise<kj::Maybe<control::Worker::Client>> twin();
    // The worker is restored: others can copy from it.
    void done(control::Worker::Client worker);

   private:
    bool isAlike(const Restoration& other) const { return other.directory == directory && other.user == user; }

    Twins& twins;
    const std::string directory;
    const uid_t user;
    kj::Maybe<control::Worker::Client> restored;
    kj::PromiseFulfillerPair<void> end = kj::newPromiseAndFulfiller<void>();
    kj::ForkedPromise<void> ended = end.promise.fork();  // done, or given up
  };

 private:
  Sessions& sessions;
  std::list<Restoration*> restorations;  // in the order in which they began
};

}  // namespace vgpu::daemon
