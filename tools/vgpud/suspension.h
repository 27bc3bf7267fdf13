// The steps of one session's suspend, alone or with other sessions (suspend-together.h).
//
// Event loop only. Destroying it before complete() was called lets the program go on as before, and removes what it has made.
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

// Shared state of several sessions' suspensions.
struct SuspendedTogether final : kj::Refcounted {
  SuspendedTogether(size_t count, uint64_t number, kj::Function<void()> allQuiesced, kj::Function<void()> allSaved)
      : number(number), quiesced(count, kj::mv(allQuiesced)), saved(count, kj::mv(allSaved)) {}

  const uint64_t number;                  // Session::together of each
  CommitBarrier quiesced, saved;          // barriers; the last arrival calls the function passed for it
  kj::Vector<kj::Promise<void>> cleared;  // after a failure, in memory: the folder of each session but the first is released
  kj::Vector<kj::Promise<void>> written;  // in the background: the snapshot of each session but the first is on disk; else rejects
  std::string folder;                     // contains those folders; removed after them
  std::vector<std::string> others;        // those sessions, whose ids are their folders' names

  // Resolves when all those folders are released, and `folder` is removed unless it contains something: session `first`, whose own folder
  // contains `folder`, will have no snapshot. Snapshots of the others that were written to disk meanwhile are not valid without it, and are
  // removed when none of their programs waits for them any more. Call it once.
  kj::Promise<void> othersCleared(Sessions& sessions, std::string first);
};

class Suspension {
 public:
  // Throws kj::Exception if the session does not run.
  Suspension(Sessions& sessions, Session& session, std::string path, control::Progress::Client progress, unsigned timeoutSeconds,
             control::Memory memory, kj::Maybe<kj::Own<SuspendedTogether>> together = nullptr, bool isFirst = false);
  ~Suspension() noexcept(false);
  KJ_DISALLOW_COPY(Suspension);

  // Call it first. Rejects if the folder is not suitable for a snapshot.
  kj::Promise<void> openFolder();
  // Resolves when the worker is gone. If the session is suspended alone, calls complete().
  kj::Promise<OperationReport> run();
  // The snapshot is written: tells the program that it is suspended. Irrevocable from here on.
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
  PinnedHold hold;  // set if chunks go to memory
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> onDisk;  // fulfils one of SuspendedTogether::written
  kj::Own<TargetFolder> folder;
  kj::AutoCloseFd target;  // passed on to the worker
  kj::Promise<std::string> workerExit;
  kj::TimePoint start, gateAskedAt = start;
  bool gateAsked = false, quiesceAsked = false, done = false;
  OperationReport report;
};

}  // namespace vgpu::daemon
