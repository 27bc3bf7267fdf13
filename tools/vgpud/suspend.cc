#include "tools/vgpud/suspend.h"

#include <spdlog/spdlog.h>

#include "tools/common/descriptor.h"
#include "tools/common/reason.h"
#include "tools/vgpud/background-write.h"
#include "tools/vgpud/target-folder.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::daemon {
namespace {

// For a worker that does not reply at all, once the time for its GPU is over.
constexpr unsigned workerGrace = 10;

class Suspension {
 public:
  Suspension(Sessions& sessions, Session& session, std::string path, control::Progress::Client progress,
             unsigned timeoutSeconds, control::Memory memory)
      : sessions(sessions),
        session(session),
        worker(*getWorker(session)),
        path(std::move(path)),
        progress(kj::mv(progress)),
        timeoutSeconds(timeoutSeconds),
        memory(memory),
        folder(kj::heap<TargetFolder>(sessions.files)),
        workerExit(worker.exited()),
        start(now()) {
    if (memory != control::Memory::NONE) hold = holdFor(this->path);
    if (!this->path.starts_with('/')) {
      fail("a snapshot's directory must be an absolute path, not \"" + this->path + "\"");
    }
    sessions.exchange.requireAlone(session.id);
    session.state = control::State::SUSPENDING;
  }
  ~Suspension() noexcept(false) {
    if (!done) abandon();
  }
  KJ_DISALLOW_COPY(Suspension);

  kj::Promise<OperationReport> run() {
    return folder->open(path)
        .then([this](kj::AutoCloseFd&& directory) {
          target = kj::mv(directory);
          report.end("folder");
          return closeGate();
        })
        .then([this](uint64_t) {
          faultPoint("suspend.gate-closed");
          report.end("gate");
          return quiesce();
        })
        .then([this] {
          report.end("quiesce");
          report.gateSeconds = secondsSince(gateAskedAt);
          sessions.exchange.requireAlone(session.id);  // it may have opened something before its gate was closed
          return save();
        })
        .then([this] { return finish(); })
        .then([this] {
          report.end("release");
          report.seconds = secondsSince(start);
          return report;
        });
  }

 private:
  static kj::Own<WorkerProcess>& getWorker(Session& session) {
    KJ_IF_MAYBE (worker, session.worker) {
      if (session.state == control::State::RUNNING) return *worker;
    }
    if (session.state == control::State::SUSPENDED) {
      fail("session " + session.id + " is suspended already, to " + session.snapshot);
    }
    if (session.state == control::State::RESUMING) {
      fail("session " + session.id + " is being suspended or resumed already; wait until that has ended");
    }
    fail("session " + session.id + " does not run: its worker was lost");
  }

  PinnedHold holdFor(const std::string& directory) {
    if (!sessions.pinned.exists()) fail("this vgpud has no pinned memory: start it with --pinned SIZE");
    if (memory == control::Memory::ONLY && !ChunkStore::around(directory))
      fail("a snapshot in memory has its files in a store of snapshots, and " + directory + " is in none");
    if (sessions.inMemory.has(directory))
      fail("this vgpud still has a snapshot " + directory + " in memory; give this one another name");
    return std::make_shared<PinnedChunks::Hold>(sessions.pinned.chunks);
  }

  kj::TimePoint now() const { return kj::systemPreciseMonotonicClock().now(); }
  double secondsSince(kj::TimePoint time) const { return (now() - time) / (1 * kj::NANOSECONDS) / 1e9; }

  kj::Promise<uint64_t> closeGate() {
    gateAsked = true;
    gateAskedAt = now();
    auto closed = session.closeGate(timeoutSeconds);
    faultPoint("suspend.gate-asked");
    return closed;
  }

  kj::Promise<void> quiesce() {
    quiesceAsked = true;
    auto request = worker.remote().quiesceRequest();
    request.setTimeoutSeconds(timeoutSeconds);
    request.setProgress(progress);
    unsigned seconds = timeoutSeconds + workerGrace;
    auto late = sessions.io.provider->getTimer().afterDelay(seconds * kj::SECONDS).then([this, seconds] {
      fail("the vgpu-worker (pid " + std::to_string(worker.pid()) + ") did not answer in " + std::to_string(seconds) +
           " s. The program goes on");
    });
    return worker.orExit(request.send().ignoreResult()).exclusiveJoin(kj::mv(late));
  }

  kj::Promise<void> save() {
    auto request = worker.remote().saveRequest();
    request.setDirectory(reader(path));
    request.setObjects(reader(session.directory->path()));
    session.describe(request.initSession());
    request.setReattach(reader(session.reattach));
    request.setProgress(progress);
    request.setTarget(kj::heap<PassedDescriptor>(kj::mv(target)));
    if (hold) {
      request.setRoom(kj::heap<PinnedRoomServer>(hold));
      request.setPool(reader(sessions.pinned.id()));
    }
    return worker.orExit(request.send().then(
        [this](capnp::Response<control::Worker::SaveResults>&& answer) {
          faultPoint("suspend.saved");
          report.take(answer.getReport(), "save");
        }));
  }

  // The snapshot is complete: from here on there is no way back, and none is needed.
  kj::Promise<void> finish() {
    done = true;
    session.state = control::State::SUSPENDED;
    session.snapshot = path;
    session.link->send([this](control::ToSession::Builder message) {
      if (hold) message.setSuspendedInMemory(reader(path));
      else message.setSuspended(reader(path));
    });
    spdlog::info("session {} ({}, pid {}) is suspended to {}", session.id, session.name, session.pid, path);
    faultPoint("suspend.program-told");
    if (hold) {
      report.memoryBytes = hold->bytes();
      sessions.inMemory.keep(path, hold, kj::mv(folder));
      if (memory == control::Memory::FIRST)
        sessions.spawn(kj::evalNow([this] { return writeInBackground(sessions, session.id, path, kj::mv(hold)); }));
    } else {
      auto kept = folder->keep();
      sessions.spawn(kept.attach(kj::mv(folder)));
    }
    // A process that ends lets go of pinned memory page by page, 30 ms a GiB: it serves another program instead.
    auto released = memory == control::Memory::NONE ? sessions.releaseWorker(session)
                                                    : sessions.retireWorker(session, sessions.keepsSuspended);
    return released.then([] { faultPoint("suspend.worker-released"); });
  }

  // The directory can be cleared when nobody writes there any more: the worker has gone on, or is gone.
  void abandon() {
    kj::Promise<void> writerEnded = kj::READY_NOW;
    if (session.ended || session.worker == nullptr) {
      writerEnded = workerExit.ignoreResult();
    } else {
      if (quiesceAsked) writerEnded = worker.goOn();
      if (gateAsked) session.openGate();
      session.state = control::State::RUNNING;
    }
    // Until then a GPU may copy to what is held, too.
    sessions.spawn(TargetFolder::discardAfter(kj::mv(writerEnded), kj::mv(folder)).attach(kj::mv(hold)));
  }

  Sessions& sessions;
  Session& session;
  WorkerProcess& worker;
  const std::string path;
  control::Progress::Client progress;
  const unsigned timeoutSeconds;
  const control::Memory memory;
  PinnedHold hold;  // if chunks go to memory
  kj::Own<TargetFolder> folder;
  kj::AutoCloseFd target;  // on its way to the worker
  kj::Promise<std::string> workerExit;
  kj::TimePoint start, gateAskedAt = start;
  bool gateAsked = false, quiesceAsked = false, done = false;
  OperationReport report;
};

}  // namespace

void OperationReport::end(const char* phase) {
  clock.end(phase);
  for (auto& [name, seconds] : clock.take()) phases.emplace_back(name, seconds);
}

// What is left of the phase is the way there and back.
void OperationReport::take(control::Report::Reader from, const char* phase) {
  clock.end(phase);
  double rest = clock.take().at(0).second;
  for (auto one : from.getPhases()) {
    phases.emplace_back(one.getName().cStr(), one.getSeconds());
    rest -= one.getSeconds();
  }
  phases.emplace_back(phase, std::max(rest, 0.0));
  copiedBytes = from.getCopiedBytes();
  deviceBytes = from.getDeviceBytes();
  storedBytes = from.getStoredBytes();
  objects = from.getObjects();
  pendingCalls = from.getPendingCalls();
  rounds = from.getRounds();
  roundBytes = from.getRoundBytes();
  heldBytes = from.getHeldBytes();
}

void OperationReport::give(control::Report::Builder to) const {
  to.setSeconds(seconds);
  to.setGateSeconds(gateSeconds);
  to.setDeviceBytes(deviceBytes);
  to.setStoredBytes(storedBytes);
  to.setObjects(objects);
  to.setPendingCalls(pendingCalls);
  to.setMemoryBytes(memoryBytes);
  to.setRounds(rounds);
  to.setRoundBytes(roundBytes);
  to.setHeldBytes(heldBytes);
  to.setCopiedBytes(copiedBytes);
  auto list = to.initPhases(static_cast<unsigned>(phases.size()));
  for (unsigned i = 0; i < phases.size(); ++i) {
    list[i].setName(phases[i].first.c_str());
    list[i].setSeconds(phases[i].second);
  }
}

kj::Promise<OperationReport> suspend(Sessions& sessions, Session& session, std::string directory,
                                     control::Progress::Client progress, unsigned timeoutSeconds, control::Memory memory) {
  session.requireIdle();
  auto suspension = kj::heap<Suspension>(sessions, session, std::move(directory), kj::mv(progress), timeoutSeconds, memory);
  auto work = suspension->run();
  return session.exclusively(work.attach(kj::mv(suspension)));
}

}  // namespace vgpu::daemon
