// Admitting programs is in admission.cc.
#include "tools/vgpud/sessions.h"

#include <kj/debug.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/common/reason.h"
#include "tools/common/session-lookup.h"
#include "tools/vgpud/log.h"
#include "tools/vgpud/renew.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::daemon {
namespace {

// Time for the last messages to programs that do not read.
constexpr auto farewellLimit = 1 * kj::SECONDS;
// How many pieces of work may hang before the next one has to wait.
constexpr unsigned mostFileThreads = 64;

}  // namespace

Sessions::Sessions(kj::AsyncIoContext& io, Processes& processes, WorkerPool& pool, RunDirectory& directory, PinnedPool& pinned,
                   bool keepsSuspended)
    : io(io),
      processes(processes),
      pool(pool),
      directory(directory),
      pinned(pinned),
      keepsSuspended(keepsSuspended),
      files(mostFileThreads),
      arrivals(io),
      removals(1),
      admissions(*this),
      cleanups(*this),
      watches(*this) {
  for (const std::string& folder : {directory.sessions(), directory.arrived(), directory.renewals()}) watchFolder(folder);
}

Sessions::~Sessions() noexcept(false) {}

void Sessions::keep(kj::Own<Session> owned, kj::Own<WorkerProcess> worker) {
  Session& session = *owned;
  session.worker = kj::mv(worker);
  session.device = pool.deviceLabel(session.devices);
  session.state = control::State::RUNNING;
  KJ_IF_MAYBE (previous, find(session.id)) {
    if (previous->renewal != nullptr) remove(previous->renewal);
    previous->life = nullptr;  // its connection may end before it is dropped: that is not the end of the program, and shared objects stay
    drop(takeOut(*previous));
  }
  table.add(kj::mv(owned));
  watch(session);
  spdlog::info("session {} ({}, pid {}) runs on {}", session.id, session.name, session.pid, session.device);
}

// A worker leaves its session: counts its launches, and ends what it shared.
void Sessions::workerLeaves(const Session& session) {
  KJ_IF_MAYBE (worker, session.worker) {
    countLaunches(session.id, **worker);
    exchange.forget(session.id);
  }
}

void Sessions::countLaunches(const std::string& id, const WorkerProcess& worker) {
  auto& counted = worker.counted().launches;
  uint64_t all = counted.sum(&LaunchCounters::OfGpu::all), folded = counted.sum(&LaunchCounters::OfGpu::folded);
  before.all += all;
  before.folded += folded;
  spdlog::info("session {} has launched {} kernels, {} of them in graphs", id, all, folded);
}

void Sessions::watchWorker(Session& session) {
  KJ_IF_MAYBE (worker, session.worker) {
    session.workerWatch = (*worker)
                              ->exited()
                              .then([this, &session](std::string how) { loseWorker(session, how); })
                              .eagerlyEvaluate(nullptr);
  }
}

void Sessions::watch(Session& session) {
  watchWorker(session);
  session.renew = kj::Function<void()>([this, &session] { spawn(renewWorker(*this, session)); });
  session.life = session.gone()
                     .then([this, &session] { programLeft(session, nullptr); },
                           [this, &session](kj::Exception&& exception) { programLeft(session, reasonOf(exception)); })
                     .eagerlyEvaluate(nullptr);
}

void Sessions::loseWorker(Session& session, const std::string& how) {
  std::string why = "its vgpu-worker " + how;
  spdlog::warn("session {} ({}, pid {}) is lost: {}", session.id, session.name, session.pid, why);
  session.state = control::State::LOST;
  workerLeaves(session);
  session.worker = nullptr;
  session.link->send([&](control::ToSession::Builder message) { message.setLost(reader(why)); });
  session.interrupt("session " + session.id + " is lost: " + why);
}

// Called from the session's own promises, which must not be destroyed while they run: drop() waits for the next turn.
void Sessions::programLeft(Session& session, kj::Maybe<std::string> misbehaviour) {
  session.ended = true;
  bool isClean = misbehaviour == nullptr && session.state == control::State::RUNNING && session.isIdle() && !session.isRenewing;
  KJ_IF_MAYBE (reason, misbehaviour) {
    spdlog::warn("session {} ({}, pid {}) is terminated: {}", session.id, session.name, session.pid, *reason);
    session.link->send([&](control::ToSession::Builder message) { message.setLost(reader(*reason)); });
  } else {
    spdlog::info("session {} ({}, pid {}) {}", session.id, session.name, session.pid,
                 *session.moved   ? "was resumed by another daemon"
                 : session.parked ? "is parked: its process is being saved"
                                  : "ended");
  }
  session.interrupt("the program of session " + session.id + " (pid " + std::to_string(session.pid) + ") has ended");
  if (*session.moved) {
    removeAfterProgram(session.directory);
  } else {
    remove(session.directory);
  }
  if (session.renewal != nullptr) remove(session.renewal);
  spawn(inMemory.remove(session.snapshot));  // in case it is suspended, or was being resumed
  spawn(pool.kept.drop(session.snapshot));
  kj::Own<Session> left = takeOut(session);
  if (left->isMoving) exchange.forget(left->id);  // its worker may have been taken
  if (isClean) giveWorkerBack(*left);
  drop(kj::mv(left));
}

kj::Maybe<kj::Own<WorkerProcess>> Sessions::takeWorker(Session& session) {
  session.workerWatch = nullptr;
  return std::exchange(session.worker, nullptr);
}

kj::Maybe<kj::Own<WorkerProcess>> Sessions::endWork(Session& session) {
  workerLeaves(session);
  return takeWorker(session);
}

void Sessions::giveWorker(Session& session, kj::Own<WorkerProcess> worker) {
  session.worker = kj::mv(worker);
  watchWorker(session);
}

// If a session with that id is here that does not move, it has come back since, and gives its objects anew.
void Sessions::workerMoved(const std::string& id, const WorkerProcess& worker) {
  countLaunches(id, worker);
  KJ_IF_MAYBE (known, find(id)) {
    if (known->isMoving) exchange.forget(id);
  }
}

void Sessions::giveWorkerBack(Session& session) {
  auto taken = endWork(session);
  KJ_IF_MAYBE (worker, taken) pool.giveBack(kj::mv(*worker));
}

kj::Promise<void> Sessions::releaseWorker(Session& session) {
  auto taken = endWork(session);
  KJ_IF_MAYBE (worker, taken) {
    auto stopped = (*worker)->stop();
    return stopped.attach(kj::mv(*worker));
  }
  return kj::READY_NOW;
}

kj::Promise<void> Sessions::retireWorker(Session& session, bool isKept) {
  auto taken = endWork(session);
  KJ_IF_MAYBE (worker, taken) {
    if (!isKept) return pool.retire(kj::mv(*worker));
    pool.kept.keep(session.snapshot, session.id, kj::mv(*worker));
  }
  return kj::READY_NOW;
}

// Those sessions go on, or end, at about the same time as the caller's.
kj::Promise<void> Sessions::nobodyWaits(std::string first, std::vector<std::string> ids) {
  const bool isAwaited = std::ranges::any_of(ids, [&](auto& id) {
    auto session = find(id);
    return session != nullptr && KJ_ASSERT_NONNULL(session).isSuspendedTo(snapshot::sessionFolderOf(first, id));
  });
  if ((!isAwaited || isEnding) && !inMemory.isToBeWritten(first)) return kj::READY_NOW;
  return io.provider->getTimer().afterDelay(50 * kj::MILLISECONDS).then([this, first = std::move(first), ids = std::move(ids)]() mutable {
    return nobodyWaits(std::move(first), std::move(ids));
  });
}

void Sessions::refuse(kj::Own<ProgramLink> link, const std::string& reason, bool isInvalidDevice) {
  link->send([&](control::ToSession::Builder message) {
    message.setRefused(reader(reason));
    message.setInvalidDevice(isInvalidDevice);
  });
  auto reported = link->flushed().exclusiveJoin(io.provider->getTimer().afterDelay(farewellLimit));
  cleanups.add(reported.attach(kj::mv(link)));
}

void Sessions::refuse(kj::Own<Session> session, const std::string& reason) {
  session->link->send([&](control::ToSession::Builder message) { message.setRefused(reader(reason)); });
  drop(kj::mv(session));
}

kj::Maybe<Session&> Sessions::find(const std::string& id) {
  for (auto& session : table) {
    if (session->id == id) return *session;
  }
  return nullptr;
}

Session& Sessions::get(const std::string& text) {
  std::vector<SessionKey> keys;
  for (auto& session : table) keys.push_back({session->id, session->name, session->pid});
  return *table[lookUpSession(keys, text)];
}

kj::Own<Session> Sessions::takeOut(Session& session) {
  for (auto entry = table.begin(); entry != table.end(); ++entry) {
    if (entry->get() != &session) continue;
    kj::Own<Session> removed = kj::mv(*entry);
    std::move(entry + 1, table.end(), entry);
    table.removeLast();
    return removed;
  }
  KJ_FAIL_ASSERT("an unknown session", session.id.c_str());
}

void Sessions::drop(kj::Own<Session> session) {
  auto reported = session->link->flushed().exclusiveJoin(io.provider->getTimer().afterDelay(farewellLimit));
  auto freed = releaseWorker(*session);
  cleanups.add(kj::evalLater([reported = kj::mv(reported), freed = kj::mv(freed)]() mutable {
                 return reported.then([freed = kj::mv(freed)]() mutable { return kj::mv(freed); });
               }).attach(kj::mv(session)));
}

void Sessions::remove(StateDirectory::Shared state) {
  auto removed = removals.run([state = std::move(state)] { return state->remove(); });
  cleanups.add(removed.then([](std::string&& problem) {
    if (!problem.empty()) warnLimited("removal", 0, problem);
  }));
}

kj::Promise<void> Sessions::removalsEnded() {
  return removals.run([] { return true; }).ignoreResult();
}

void Sessions::removeAfterProgram(StateDirectory::Shared state) {
  auto found = removals.run([state] { return state->livingOwner(); });
  watches.add(found.then([this, state = std::move(state)](kj::Maybe<kj::AutoCloseFd>&& owner) mutable {
    kj::Promise<void> ended = kj::READY_NOW;
    KJ_IF_MAYBE (process, owner) {
      ended = processes.ended(kj::mv(*process));
    }
    return ended.then([this, state = std::move(state)]() mutable { remove(std::move(state)); });
  }));
}

// Takes over what earlier daemons left: their programs have ended, or are suspended, or run elsewhere, or have lost their GPU.
void Sessions::watchFolder(const std::string& folder) {
  timespec begun;
  KJ_SYSCALL(clock_gettime(CLOCK_REALTIME_COARSE, &begun));
  auto found = removals.run([folder, begun] { return StateDirectory::all(folder, begun); });
  cleanups.add(found.then([this](std::vector<StateDirectory::Shared>&& all) {
    for (auto& state : all) removeAfterProgram(state);
  }));
}

void Sessions::requireAdmitting() const {
  if (isEnding) fail("this vgpud is shutting down and takes no more sessions");
}

kj::Promise<void> Sessions::close(kj::Promise<void> atOnce) {
  stopAdmitting();
  pool.close();
  kj::Vector<kj::Promise<void>> farewells;
  for (auto& session : table) {
    session->interrupt("this vgpud is shutting down");
    session->life = nullptr;
    if (session->state == control::State::SUSPENDED || session->state == control::State::RESUMING) continue;
    remove(session->directory);
    if (session->worker == nullptr) continue;
    session->link->send([](control::ToSession::Builder message) { message.setLost("its vgpud was shut down"); });
    farewells.add(releaseWorker(*session));
    farewells.add(session->link->flushed());
  }
  auto left = kj::joinPromises(farewells.releaseAsArray()).eagerlyEvaluate(nullptr);
  return inMemory.writesEnded(io.provider->getTimer()).exclusiveJoin(kj::mv(atOnce)).then([this, left = kj::mv(left)]() mutable {
    return inMemory.stopWriters(io.provider->getTimer())
        .then([this] { return leaveMemory(); })
        .then([left = kj::mv(left)]() mutable { return kj::mv(left); })
        .then([this] { return processes.allReaped(); })
        .then([this] { return cleanups.onEmpty(); })
        .exclusiveJoin(io.provider->getTimer().afterDelay(2 * farewellLimit));
  });
}

// Tells the programs whose snapshots are in memory what becomes of the snapshots.
kj::Promise<void> Sessions::leaveMemory() {
  kj::Vector<kj::Promise<void>> told;
  for (auto& each : table) {
    Session& session = *each;
    const std::string path = session.snapshot, around = inMemory.around(path);
    if (around.empty()) {
      if (session.state == control::State::SUSPENDED) told.add(session.link->flushed());
      continue;
    }
    told.add(files.run([path, around] { return isOnDisk(path) && isOnDisk(around); }).then([&session, path](bool isThere) {
      session.link->send([&](control::ToSession::Builder message) {
        if (isThere)
          message.setSuspended(reader(path));
        else
          message.setLost("its snapshot was in the memory of its vgpud, which was shut down");
      });
      return session.link->flushed();
    }));
  }
  return kj::joinPromises(told.releaseAsArray()).then([this] { return inMemory.removeAll(); });
}

void Sessions::taskFailed(kj::Exception&& exception) { spdlog::warn("{}", reasonOf(exception)); }

}  // namespace vgpu::daemon
