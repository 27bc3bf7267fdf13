// Which workers have device memory of the same snapshot. A session that is resumed copies from such a twin, on the GPU, what that
// still has (checkpoint/twin-memory.h); so copies of a program (`vgpuctl clone`) read the snapshot's files once, or not at all.
//
// Of the event loop's thread.
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

  // A session's worker that is being restored from the snapshot in `directory`, as long as this lives.
  class Restoration {
   public:
    Restoration(Twins& twins, std::string directory, uid_t user);
    ~Restoration();
    KJ_DISALLOW_COPY(Restoration);

    // A worker of the same user's that has memory of this snapshot: of a session that runs, or of one that is being restored
    // before this one, as soon as it has been. Nothing if there is none.
    kj::Promise<kj::Maybe<control::Worker::Client>> twin();
    // It has been: others can copy from this worker.
    void done(control::Worker::Client worker);

   private:
    bool isAlike(const Restoration& other) const { return other.directory == directory && other.user == user; }

    Twins& twins;
    const std::string directory;
    const uid_t user;
    kj::Maybe<control::Worker::Client> restored;
    kj::PromiseFulfillerPair<void> end = kj::newPromiseAndFulfiller<void>();
    kj::ForkedPromise<void> ended = end.promise.fork();  // or given up
  };

 private:
  Sessions& sessions;
  std::list<Restoration*> restorations;  // the one that began first, first
};

}  // namespace vgpu::daemon
