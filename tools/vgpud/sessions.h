// All sessions of a node: admits programs, gives them workers, and reacts to the end of either.
//
// Owns the sessions; everything runs in the daemon's event loop. A session in the table is running, suspended, in transition between the
// two, or lost. suspend.cc and resume.cc implement the two long operations on it.
#pragma once

#include <kj/async-io.h>
#include <kj/vector.h>

#include <set>
#include <string>

#include "tools/common/file-work.h"
#include "tools/vgpud/arrivals.h"
#include "tools/vgpud/exchange.h"
#include "tools/vgpud/guest-pauses.h"
#include "tools/vgpud/memory-snapshots.h"
#include "tools/vgpud/pinned-pool.h"
#include "tools/vgpud/processes.h"
#include "tools/vgpud/run-directory.h"
#include "tools/vgpud/session.h"
#include "tools/vgpud/twins.h"
#include "tools/vgpud/worker-pool.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/greeting.h"

namespace vgpu::daemon {

class Sessions final : private kj::TaskSet::ErrorHandler {
 public:
  // `keepsSuspended`: workers whose sessions are suspended to memory keep their sessions (kept-workers.h).
  Sessions(kj::AsyncIoContext& io, Processes& processes, WorkerPool& pool, RunDirectory& directory, PinnedPool& pinned,
           bool keepsSuspended);
  ~Sessions() noexcept(false);

  // A new connection of a program.
  void admit(kj::AutoCloseFd socket);

  kj::ArrayPtr<const kj::Own<Session>> all() const { return table; }
  // Finds a session by id, name or pid. Throws kj::Exception if none or several match.
  Session& get(const std::string& text);
  // Finds a session by id.
  kj::Maybe<Session&> find(const std::string& id);

  // Runs `work` for a session that is not in the table yet; rejects if its program ends before.
  template <typename T>
  kj::Promise<T> whileProgramLives(Session& session, kj::Promise<T> work) {
    auto early = session.gone().then([]() -> kj::Promise<T> { fail("the program has ended"); });
    return work.exclusiveJoin(kj::mv(early));
  }

  // Adds a session whose worker consumes to the table; replaces one with the same id.
  void keep(kj::Own<Session> session, kj::Own<WorkerProcess> worker);

  // Tells a program that it gets no worker; its connection ends when that has been sent.
  void refuse(kj::Own<ProgramLink> link, const std::string& reason, bool isInvalidDevice = false);
  void refuse(kj::Own<Session> session, const std::string& reason);

  // Launches by workers that have left their sessions.
  struct Launches {
    uint64_t all = 0, folded = 0;
  };
  const Launches& launchesBefore() const { return before; }

  // Takes a session's worker while another worker may claim the session: the worker is not watched meanwhile. Afterwards call either
  // giveWorker(), which restores the previous state, or workerMoved(), even if the session has left meanwhile.
  kj::Maybe<kj::Own<WorkerProcess>> takeWorker(Session& session);
  void giveWorker(Session& session, kj::Own<WorkerProcess> worker);
  void workerMoved(const std::string& id, const WorkerProcess& worker);

  // Takes a session's worker and stops it. Resolves when its devices are free.
  kj::Promise<void> releaseWorker(Session& session);
  // The same for a session whose snapshot is in memory: its worker serves another program if it can, or is kept (kept-workers.h).
  kj::Promise<void> retireWorker(Session& session, bool isKept);

  // Resolves when no session of `ids` waits for its snapshot in the one at `first` any more (or this daemon ends), and that snapshot is not
  // to be written any more.
  kj::Promise<void> nobodyWaits(std::string first, std::vector<std::string> ids);

  // Removes a directory that no session uses any more, in the background.
  void remove(StateDirectory::Shared directory);

  // The same after the directory's program has ended: for a directory that another daemon may be using.
  void removeAfterProgram(StateDirectory::Shared directory);

  // Resolves when all removals requested so far are done.
  kj::Promise<void> removalsEnded();

  // Runs what must still happen after an operation has ended; close() waits for it. A failure is logged.
  void spawn(kj::Promise<void> task) { cleanups.add(kj::mv(task)); }

  // Returns false if an operation is already taking session `id` over from another daemon; otherwise reserves it until leave().
  bool enter(const std::string& id) { return arriving.insert(id).second; }
  void leave(const std::string& id) { arriving.erase(id); }

  // From here on no session comes to this node: neither a new program's, nor one that is resumed or moves here.
  void stopAdmitting() { isEnding = true; }
  bool isAdmitting() const { return !isEnding; }
  // Throws kj::Exception if the node admits no sessions.
  void requireAdmitting() const;

  // Tells all programs that their workers end, ends the workers, and leaves suspended programs alone. Snapshots in memory that are being
  // written to disk are finished first, unless `atOnce` resolves.
  kj::Promise<void> close(kj::Promise<void> atOnce);

  kj::AsyncIoContext& io;
  Processes& processes;
  WorkerPool& pool;
  RunDirectory& directory;
  PinnedPool& pinned;
  const bool keepsSuspended;
  const std::string daemon = textOf(newSessionToken());  // as in Node.hello
  FileWork files;  // for file work for which a caller waits
  MemorySnapshots inMemory;
  Exchange exchange{*this};
  Twins twins{*this};
  Arrivals arrivals;
  Guests* guests = nullptr;  // the virtual machines that this daemon serves
  GuestPauses pauses{io.provider->getTimer()};

 private:
  kj::Promise<void> leaveMemory();
  void giveWorkerBack(Session& session);  // after its program has ended
  kj::Maybe<kj::Own<WorkerProcess>> endWork(Session& session);  // takes the worker, which leaves the session
  void workerLeaves(const Session& session);
  void countLaunches(const std::string& id, const WorkerProcess& worker);

  kj::Promise<void> open(kj::Own<ProgramLink>& link, ProgramOpen request);
  kj::Promise<void> begin(kj::Own<ProgramLink>& link, ProgramOpen request, StateDirectory::Shared state);
  void watchFolder(const std::string& folder);
  void watch(Session& session);
  void watchWorker(Session& session);
  void loseWorker(Session& session, const std::string& how);
  void programLeft(Session& session, kj::Maybe<std::string> misbehaviour);
  kj::Own<Session> takeOut(Session& session);
  void drop(kj::Own<Session> session);
  void taskFailed(kj::Exception&& exception) override;

  FileWork removals;  // one at a time: removals take long, and no caller waits for them
  kj::Vector<kj::Own<Session>> table;
  std::set<std::string> arriving;
  bool isEnding = false;
  kj::TaskSet admissions, cleanups;
  kj::TaskSet watches;  // for programs whose sessions are not in the table; close() does not wait for them
  Launches before;
};

}  // namespace vgpu::daemon
