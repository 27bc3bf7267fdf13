// All sessions of a node: admits programs, gives them workers, and reacts to the end of either.
//
// Owns the sessions; everything runs in the daemon's event loop. A session in the table is running, suspended, on the
// way between the two, or lost. suspend.cc and resume.cc are the two long operations on it.
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
  // `keepsSuspended`: workers whose sessions are suspended to memory keep them (kept-workers.h).
  Sessions(kj::AsyncIoContext& io, Processes& processes, WorkerPool& pool, RunDirectory& directory, PinnedPool& pinned,
           bool keepsSuspended);
  ~Sessions() noexcept(false);

  // A program's new connection.
  void admit(kj::AutoCloseFd socket);

  kj::ArrayPtr<const kj::Own<Session>> all() const { return table; }
  // By id, name or pid. Throws kj::Exception if that means none or several.
  Session& get(const std::string& text);
  // By id.
  kj::Maybe<Session&> find(const std::string& id);

  // `work` for a session that is not in the table yet; rejects if its program ends before.
  template <typename T>
  kj::Promise<T> whileProgramLives(Session& session, kj::Promise<T> work) {
    auto early = session.gone().then([]() -> kj::Promise<T> { fail("the program has ended"); });
    return work.exclusiveJoin(kj::mv(early));
  }

  // Adds a session whose worker consumes to the table; replaces one of the same id.
  void keep(kj::Own<Session> session, kj::Own<WorkerProcess> worker);

  // Reports to a program that it gets no worker; its connection ends when that has been sent.
  void refuse(kj::Own<ProgramLink> link, const std::string& reason, bool isInvalidDevice = false);
  void refuse(kj::Own<Session> session, const std::string& reason);

  // What sessions have launched whose workers are no longer theirs.
  struct Launches {
    uint64_t all = 0, folded = 0;
  };
  const Launches& launchesBefore() const { return before; }

  // Takes a session's worker away while another one may claim the session: nobody watches it, and the session has none. Then either
  // giveWorker(), and nothing has changed, or workerMoved(), also if the session has left meanwhile.
  kj::Maybe<kj::Own<WorkerProcess>> takeWorker(Session& session);
  void giveWorker(Session& session, kj::Own<WorkerProcess> worker);
  void workerMoved(const std::string& id, const WorkerProcess& worker);

  // Takes a session's worker away and stops it. Resolves when the device is free.
  kj::Promise<void> releaseWorker(Session& session);
  // The same of a session whose snapshot is in memory: its worker serves another program if it can, or is kept (kept-workers.h).
  kj::Promise<void> retireWorker(Session& session, bool isKept);

  // Resolves when none of the sessions `ids` waits for its snapshot in the one at `first` any more, or this daemon ends, and that one is
  // not to be written any more.
  kj::Promise<void> nobodyWaits(std::string first, std::vector<std::string> ids);

  // Removes a directory that no session uses any more, in the background.
  void remove(StateDirectory::Shared directory);

  // The same once the directory's program has ended: for a directory that another daemon may be using.
  void removeAfterProgram(StateDirectory::Shared directory);

  // Resolves when what was to be removed so far is.
  kj::Promise<void> removalsEnded();

  // Runs what must still happen after an operation has ended; close() waits for it. A failure is logged.
  void spawn(kj::Promise<void> task) { cleanups.add(kj::mv(task)); }

  // Whether an operation may begin to take over session `id` from another daemon; until leave(), no other operation may.
  bool enter(const std::string& id) { return arriving.insert(id).second; }
  void leave(const std::string& id) { arriving.erase(id); }

  // From here on no session comes to this node: no program's, and none that is resumed or moves here.
  void stopAdmitting() { isEnding = true; }
  bool isAdmitting() const { return !isEnding; }
  // Throws kj::Exception if it does not.
  void requireAdmitting() const;

  // Reports to all programs that their workers end, ends the workers, and leaves suspended programs as they are. What is being
  // written from memory to disk is written first, until `atOnce` resolves.
  kj::Promise<void> close(kj::Promise<void> atOnce);

  kj::AsyncIoContext& io;
  Processes& processes;
  WorkerPool& pool;
  RunDirectory& directory;
  PinnedPool& pinned;
  const bool keepsSuspended;
  const std::string daemon = textOf(newSessionToken());  // as Node.hello says
  FileWork files;  // work for which a caller waits
  MemorySnapshots inMemory;
  Exchange exchange{*this};
  Twins twins{*this};
  Arrivals arrivals;
  Guests* guests = nullptr;  // the virtual machines that this daemon serves
  GuestPauses pauses{io.provider->getTimer()};

 private:
  kj::Promise<void> leaveMemory();
  void giveWorkerBack(Session& session);  // its program has ended
  kj::Maybe<kj::Own<WorkerProcess>> endWork(Session& session);  // takes the worker, which leaves
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

  FileWork removals;  // one after the other: they take long, and no caller waits for them
  kj::Vector<kj::Own<Session>> table;
  std::set<std::string> arriving;
  bool isEnding = false;
  kj::TaskSet admissions, cleanups;
  kj::TaskSet watches;  // of programs whose sessions are not in the table; close() does not wait for them
  Launches before;
};

}  // namespace vgpu::daemon
