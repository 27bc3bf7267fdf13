// One session on its way to a snapshot: the steps of a suspend, alone or with other sessions (suspend-together.h).
//
// Event loop only. Until complete() has been called, destroying it lets the program go on as before, and removes what it has
// made.
#pragma once

#include <kj/async.h>
#include <kj/refcount.h>
#include <kj/vector.h>

#include <string>
#include <vector>

#include "tools/vgpud/commit-barrier.h"
#include "tools/vgpud/elapsed.h"
#include "tools/vgpud/suspend.h"
#include "tools/vgpud/target-folder.h"

namespace vgpu::daemon {

// What the suspensions of several sessions have in common.
struct SuspendedTogether final : kj::Refcounted {
  SuspendedTogether(size_t count, uint64_t number, kj::Function<void()> allQuiesced, kj::Function<void()> allSaved)
      : number(number), quiesced(count, kj::mv(allQuiesced)), saved(count, kj::mv(allSaved)) {}

  const uint64_t number;                  // Session::together of each
  CommitBarrier quiesced, saved;          // where each waits for all, which the last one says that it is
  kj::Vector<kj::Promise<void>> cleared;  // after a failure, and in memory: when the folder of each but the first has been let go of
  kj::Vector<kj::Promise<void>> written;  // in the background: when the snapshot of each but the first is on disk; reject if it is not
  std::string folder;                     // in which those folders are; it is removed after them
  std::vector<std::string> others;        // those sessions, whose ids are their folders' names

  // Resolves when all of them have been let go of, and that folder is removed, unless something is in it: of `first`, in whose own
  // folder it is, there will be no snapshot. What has come to disk of theirs meanwhile is no snapshot without it, and is removed when
  // none of their programs waits for it any more. Once.
  kj::Promise<void> othersCleared(Sessions& sessions, std::string first);
};

class Suspension {
 public:
  // Throws kj::Exception if the session does not run.
  Suspension(Sessions& sessions, Session& session, std::string path, control::Progress::Client progress, unsigned timeoutSeconds,
             control::Memory memory, kj::Maybe<kj::Own<SuspendedTogether>> together = nullptr, bool isFirst = false);
  ~Suspension() noexcept(false);
  KJ_DISALLOW_COPY(Suspension);

  // First. Rejects if it cannot be a snapshot's.
  kj::Promise<void> openFolder();
  // Resolves when the worker is gone. Alone, it calls complete().
  kj::Promise<OperationReport> run();
  // The snapshot is written: the program is told that it is suspended. From here on there is no way back, and none is needed.
  void complete();

  Session& of() { return session; }

 private:
  static kj::Own<WorkerProcess>& getWorker(Session& session);
  PinnedHold holdFor(const std::string& directory);
  kj::Promise<uint64_t> closeGate();
  kj::Promise<void> quiesce();
  kj::Promise<void> allQuiesced();
  kj::Promise<void> save();
  kj::Promise<void> allSaved();
  kj::Promise<void> release();
  kj::Promise<void> write();
  void abandon();

  Sessions& sessions;
  Session& session;
  WorkerProcess& worker;
  const std::string path;
  control::Progress::Client progress;
  const unsigned timeoutSeconds;
  const control::Memory memory;
  kj::Maybe<kj::Own<SuspendedTogether>> together;
  const bool isFirst;
  PinnedHold hold;  // if chunks go to memory
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> onDisk;  // of one of SuspendedTogether::written
  kj::Own<TargetFolder> folder;
  kj::AutoCloseFd target;  // on its way to the worker
  kj::Promise<std::string> workerExit;
  kj::TimePoint start, gateAskedAt = start;
  bool gateAsked = false, quiesceAsked = false, done = false;
  OperationReport report;
};

}  // namespace vgpu::daemon
