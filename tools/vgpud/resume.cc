#include "tools/vgpud/resume.h"

#include <kj/refcount.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "tools/common/copyable.h"
#include "tools/common/descriptor.h"
#include "tools/common/reason.h"
#include "tools/vgpud/elapsed.h"
#include "tools/vgpud/memory-snapshots.h"
#include "tools/vgpud/park.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"
#include "vgpu/control/unix-socket.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::daemon {
namespace {

// The program gives up a daemon that is silent for a minute.
constexpr auto reportInterval = 5 * kj::SECONDS;

class Resumption final : public kj::Refcounted {
 public:
  Resumption(Sessions& sessions, std::string path, control::Progress::Client caller, std::vector<uint32_t> devices,
             Arrived arrived, InTree tree)
      : sessions(sessions),
        directory(std::move(path)),
        progress(kj::mv(caller)),
        devices(std::move(devices)),
        start(now()),
        link(kj::mv(arrived.program)),
        worker(kj::mv(arrived.worker)),
        fillArena(kj::mv(arrived.fillArena)),
        machine(kj::mv(arrived.machine)),
        tree(kj::mv(tree)) {
    if (!directory.starts_with('/')) fail("a snapshot's directory must be an absolute path, not \"" + directory + "\"");
  }

  ~Resumption() noexcept(false) {
    if (!entered) return;
    sessions.leave(identity.session);
    if (done) return;
    sessions.exchange.forget(identity.session);
    setKnownState(control::State::SUSPENDED);
    if (session.get() != nullptr) sessions.refuse(kj::mv(session), why);
    if (link.get() != nullptr) sessions.refuse(kj::mv(link), why);
    if (unparked != nullptr) sessions.removeAfterProgram(unparked);
  }
  KJ_DISALLOW_COPY(Resumption);

  // Records the error for the caller as the reason that the program is told.
  void failed(const kj::Exception& exception) { why = reasonOf(exception); }

  kj::Promise<Resumed> run() {
    return sessions.files
        .run([directory = directory, pool = sessions.pinned.id()] {
          snapshot::Header header = snapshot::readHeader(snapshot::SnapshotReader(directory));
          requireOwnMemory(directory, header.pool, pool);
          return header.identity;
        })
        .then([this](snapshot::Identity&& read) {
          const std::string saved = read.session;
          if (tree.copy != 0) {
            read.session = newSessionId();
            read.pid = tree.copy;
          }
          enter(kj::mv(read));
          return meetGroup().then([this, saved] { return unpark(sessions, identity.pid, saved, identity.session); });
        })
        .then([this](kj::Maybe<StateDirectory::Shared>&& made) {
          KJ_IF_MAYBE (state, made) {
            unparked = *state;
            identity.reattach = (*state)->reattachSocket();
          } else if (tree.copy != 0) {
            fail("process " + std::to_string(tree.copy) + " is not a copy of the snapshot's program, or has ended");
          }
          return meetProgram();
        })
        .then([this] {
          faultPoint("resume.met");
          return link->receiveOpen().catch_([this](kj::Exception&& exception) -> ProgramOpen { failAsEnded(kj::mv(exception)); });
        })
        .then([this](ProgramOpen&& open) {
          faultPoint("resume.opened");
          report.end("program");
          return adoptState(kj::mv(open));
        })
        .then([this](Adopted&& adopted) { return restoreFor(kj::mv(adopted)); })
        .then([this] { return awaitMachine(); })
        .then([this] { return offer(); })
        .then([this](uint64_t handover) { return allArrived().then([handover] { return handover; }); })
        .then([this](uint64_t handover) {
          faultPoint("resume.accepted");
          // Daemon and program have both committed: the caller's end cancels nothing any more.
          auto committed = commit(handover).attach(kj::addRef(*this)).fork();
          sessions.spawn(committed.addBranch());
          return committed.addBranch();
        })
        .then([this] {
          report.end("handover");
          report.seconds = secondsSince(start);
          return Resumed{identity.session, report};
        });
  }

 private:
  void enter(snapshot::Identity&& read) {
    KJ_IF_MAYBE (known, sessions.find(read.session)) {
      known->requireIdle();
      if (known->state == control::State::RESUMING) fail("session " + read.session + " is being resumed already");
      if (known->state != control::State::SUSPENDED) {
        fail("session " + read.session + " of this snapshot is not suspended: its program (pid " +
             std::to_string(known->pid) + ") runs on this node");
      }
    }
    if (!sessions.enter(read.session)) fail("session " + read.session + " is being resumed already");
    identity = kj::mv(read);
    entered = true;
    setKnownState(control::State::RESUMING);
  }

  // All sessions that shared with it when it was suspended must be resumed with it.
  kj::Promise<void> meetGroup() {
    if (tree.copy != 0) requireCopyable(identity);
    if (tree.group.get() == nullptr) return SharingGroup(1).join(identity.session, identity.sharesWith);
    return tree.group->join(identity.session, identity.sharesWith);
  }

  // Connects to the program's socket, and identifies this daemon.
  kj::Promise<void> meetProgram() {
    if (link.get() != nullptr) {
      reattach();
      return kj::READY_NOW;
    }
    auto met = sessions.files.run([socket = identity.reattach, id = identity.session] {
      return StateDirectory::meet(socket, id);
    });
    return met.then(
        [this](kj::AutoCloseFd&& socket) {
          link = kj::heap<ProgramLink>(sessions.io, kj::mv(socket));
          if (!isTrusted(link->peer())) fail("the program of this snapshot, " + program() + ", belongs to another user");
          reattach();
        },
        [this](kj::Exception&& exception) { failAsEnded(kj::mv(exception)); });
  }

  std::string program() const { return identity.program + " (pid " + std::to_string(identity.pid) + ")"; }

  // The program may end at any moment before it answers.
  [[noreturn]] void failAsEnded(kj::Exception&& exception) const {
    if (exception.getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(exception));
    fail("the program of this snapshot, " + program() + ", has ended; the snapshot cannot be resumed into it");
  }

  void reattach() {
    link->send([this](control::ToSession::Builder message) { message.setReattach(reader(identity.session)); });
  }

  // The program's `open` message, and its state directory, which it has passed.
  struct Adopted {
    ProgramOpen open;
    StateDirectory::Shared state;
  };
  kj::Promise<Adopted> adoptState(ProgramOpen open) {
    if (open.session != identity.session) {
      fail("the program that answered has session " + open.session + ", but the snapshot is of session " + identity.session);
    }
    auto state = sessions.files.run([passed = kj::mv(open.state), id = open.session, pid = link->peer().pid]() mutable {
      return StateDirectory::adopt(kj::mv(passed), id, pid);
    });
    return state.then([open = kj::mv(open)](StateDirectory::Shared&& state) mutable {
      return Adopted{kj::mv(open), kj::mv(state)};
    });
  }

  kj::Promise<void> restoreFor(Adopted adopted) {
    session = kj::heap<Session>(sessions.io, sessions.processes, kj::mv(link), adopted.open, adopted.state);
    session->devices = devices;
    session->hostArena = duplicate(adopted.open.hostArena);
    reports = keepReporting().eagerlyEvaluate(nullptr);
    kj::Promise<void> filled = kj::READY_NOW;
    KJ_IF_MAYBE (fill, fillArena) filled = (*fill)(adopted.open.hostArena);
    auto restored = filled.then([this, open = kj::mv(adopted.open)]() mutable { return restore(kj::mv(open)); });
    return sessions.whileProgramLives(*session, kj::mv(restored));
  }

  // Keeps telling the program, for as long as it takes, that the resume is in progress.
  kj::Promise<void> keepReporting() {
    session->link->send([](control::ToSession::Builder message) { message.setWorking(); });
    return sessions.io.provider->getTimer().afterDelay(reportInterval).then([this] { return keepReporting(); });
  }

  // In the worker that still has the session, if there is one; otherwise in a fresh one.
  kj::Promise<void> restore(ProgramOpen open) {
    kj::Maybe<kj::Own<WorkerProcess>> kept;
    if (devices.empty() && worker.get() == nullptr) kept = sessions.pool.kept.take(directory);
    KJ_IF_MAYBE (owned, kept) {
      worker = kj::mv(*owned);
      return reclaim(open).catch_([this, open = kj::mv(open)](kj::Exception&& exception) mutable {
        spdlog::info("session {} cannot go on in the worker that kept it: {}", identity.session, reasonOf(exception));
        auto stopped = worker->stop();
        return stopped.attach(kj::mv(worker)).then([this, open = kj::mv(open)]() mutable { return rebuild(kj::mv(open)); });
      });
    }
    return rebuild(kj::mv(open));
  }

  kj::Promise<void> reclaim(const ProgramOpen& open) {
    auto request = worker->remote().reclaimRequest();
    request.setDirectory(reader(directory));
    request.setSegment(kj::heap<PassedDescriptor>(duplicate(open.segment)));
    request.setHostArena(kj::heap<PassedDescriptor>(duplicate(open.hostArena)));
    request.setExchange(sessions.exchange.serve(*session));
    return worker->orExit(request.send().then([this](capnp::Response<control::Worker::ReclaimResults>&& results) {
      faultPoint("resume.restored");
      report.take(results.getReport(), "reclaim");
    }));
  }

  kj::Promise<void> rebuild(ProgramOpen open) {
    kj::Promise<kj::Own<WorkerProcess>> ready =
        worker.get() != nullptr ? kj::Promise<kj::Own<WorkerProcess>>(kj::mv(worker)) : sessions.pool.take(WorkerPool::Want::fresh);
    return ready
        .then([this](kj::Own<WorkerProcess>&& taken) {
          worker = kj::mv(taken);
          report.end("worker");
          return restoration.emplace(sessions.twins, directory, session->link->peer().uid).twin();
        })
        .then([this, open = kj::mv(open)](kj::Maybe<control::Worker::Client>&& twin) mutable {
          auto request = worker->remote().restoreRequest();
          KJ_IF_MAYBE (other, twin) {
            report.end("wait for twin");
            request.setTwin(kj::heap<PassedDescriptor>(askForMemory(*other)));
          }
          request.setDirectory(reader(directory));
          request.setSegment(kj::heap<PassedDescriptor>(kj::mv(open.segment)));
          request.setHostArena(kj::heap<PassedDescriptor>(kj::mv(open.hostArena)));
          request.setProgress(progress);
          request.setDevices(kj::arrayPtr(devices.data(), devices.size()));
          request.setMemoryLater(machine != nullptr);
          kj::Maybe<kj::Own<SharingGroup>> group;
          if (tree.group.get() != nullptr) group = kj::addRef(*tree.group);
          request.setExchange(sessions.exchange.serve(*session, kj::mv(group)));
          if (sessions.pinned.exists()) {
            hold = std::make_shared<PinnedChunks::Hold>(sessions.pinned.chunks);
            request.setRoom(kj::heap<PinnedRoomServer>(hold));
          }
          return worker->orExit(request.send().then([this](capnp::Response<control::Worker::RestoreResults>&& results) {
            faultPoint("resume.restored");
            report.take(results.getReport(), "restore");
            KJ_ASSERT_NONNULL(restoration).done(worker->remote());
            if (hold) report.memoryBytes = hold->bytes();
          }));
        });
  }

  // Makes another session's worker show its device memory, on the other end of a socket. If it cannot, the socket ends empty.
  kj::AutoCloseFd askForMemory(control::Worker::Client other) {
    int ends[2];
    KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    auto request = other.showMemoryRequest();
    request.setTo(kj::heap<PassedDescriptor>(kj::AutoCloseFd(ends[0])));
    sessions.spawn(request.send().ignoreResult().catch_([id = identity.session](kj::Exception&& exception) {
      spdlog::info("session {} copies nothing from the GPU memory of another session: {}", id, reasonOf(exception));
    }));
    return kj::AutoCloseFd(ends[1]);
  }

  kj::Promise<void> awaitMachine() {
    KJ_IF_MAYBE (its, machine) {
      its->restored->fulfill();
      auto lost = worker->exited().then([](std::string how) { fail("the vgpu-worker " + how); });
      return sessions.whileProgramLives(*session, its->came.exclusiveJoin(kj::mv(lost))).then([this] { report.end("machine"); });
    }
    return kj::READY_NOW;
  }

  kj::Promise<uint64_t> offer() {
    auto answer = session->offer(machine != nullptr);
    faultPoint("resume.daemon-committed");
    return sessions.whileProgramLives(*session, kj::mv(answer));
  }

  kj::Promise<void> allArrived() {
    if (tree.barrier.get() == nullptr) return kj::READY_NOW;
    tree.group->restored();
    return sessions.whileProgramLives(*session, tree.barrier->arrive());
  }

  // The worker claims the session. If the program has withdrawn, the claim fails and the program is suspended as before.
  kj::Promise<void> commit(uint64_t handover) {
    auto request = worker->remote().proceedRequest();
    request.setHandover(handover);
    auto claimed = worker->orExit(request.send().ignoreResult());
    return sessions.whileProgramLives(*session, kj::mv(claimed)).then([this] {
      done = true;
      reports = nullptr;
      session->openGate();
      KJ_IF_MAYBE (known, sessions.find(identity.session)) {
        sessions.spawn(sessions.pool.kept.drop(known->snapshot));
        sessions.spawn(sessions.inMemory.remove(known->snapshot));  // even if it was resumed from another snapshot of the same suspend
      }
      session->memoryIn = directory;
      sessions.keep(kj::mv(session), kj::mv(worker));
      restoration = nullptr;
      hold = nullptr;
      sessions.spawn(sessions.inMemory.remove(directory));  // it was kept only for this resume
      faultPoint("resume.gate-opened");
    });
  }

  void setKnownState(control::State state) {
    KJ_IF_MAYBE (known, sessions.find(identity.session)) {
      known->state = state;
    }
  }

  Sessions& sessions;
  const std::string directory;
  control::Progress::Client progress;
  const std::vector<uint32_t> devices;  // of this node, by device of the session
  kj::TimePoint start;
  snapshot::Identity identity;
  StateDirectory::Shared unparked;  // of a program that was parked
  kj::Own<ProgramLink> link;      // until a session exists, which owns it
  kj::Own<Session> session;       // until the table owns it,
  kj::Own<WorkerProcess> worker;  // and the worker with it
  kj::Maybe<kj::Function<kj::Promise<void>(int)>> fillArena;
  kj::Maybe<Arrived::Machine> machine;  // set if the session comes with its machine
  InTree tree;
  kj::Maybe<Twins::Restoration> restoration;
  PinnedHold hold;                // the chunks in pinned memory
  kj::Promise<void> reports = nullptr;
  bool entered = false, done = false;
  std::string why = "the command that resumed this program was interrupted";
  OperationReport report;
};

}  // namespace

kj::Promise<Resumed> resume(Sessions& sessions, std::string directory, control::Progress::Client progress,
                            std::vector<uint32_t> devices, Arrived arrived, InTree tree) {
  auto resumption = kj::refcounted<Resumption>(sessions, std::move(directory), kj::mv(progress), std::move(devices),
                                               kj::mv(arrived), kj::mv(tree));
  auto work = resumption->run().catch_([&resumption = *resumption](kj::Exception&& exception) -> kj::Promise<Resumed> {
    resumption.failed(exception);
    return kj::mv(exception);
  });
  return work.attach(kj::mv(resumption));
}

}  // namespace vgpu::daemon
