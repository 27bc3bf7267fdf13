#include "tools/vgpud/migrate.h"

#include <capnp/rpc-twoparty.h>
#include <fmt/format.h>
#include <kj/refcount.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <vector>

#include "tools/common/arrival.h"
#include "tools/common/descriptor.h"
#include "tools/common/node-address.h"
#include "tools/common/node-relay.h"
#include "tools/common/reason.h"
#include "tools/vgpud/arrival-files.h"
#include "tools/vgpud/elapsed.h"
#include "tools/vgpud/passing-folder.h"
#include "tools/vgpud/target-folder.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::daemon {
namespace {

// Of the time for which a program may be held, files may have been sent for this much since the last round.
constexpr double shareOfFiles = 0.25;
// A program that loads one image after the other ends no rounds.
constexpr unsigned mostFileRounds = 5;

// A connection with the node, and the process that passes its bytes on if the node is elsewhere.
struct Reached {
  std::unique_ptr<NodeRelay> relay;
  kj::AutoCloseFd socket;
};

Reached reachElsewhere(const Endpoint& endpoint, NodeRelay::For what) {
  Reached reached{std::make_unique<NodeRelay>(endpoint, what), {}};
  reached.socket = reached.relay->take();
  return reached;
}

Reached connectStream(const std::optional<Endpoint>& elsewhere, const std::string& path, const std::string& token) {
  Reached reached = elsewhere ? reachElsewhere(*elsewhere, NodeRelay::For::stream) : Reached{nullptr, connectUnix(path)};
  announce(reached.socket, Bringing::memory, token);
  return reached;
}

Reached connectNode(const std::optional<Endpoint>& elsewhere, const std::string& target) {
  if (elsewhere) return reachElsewhere(*elsewhere, NodeRelay::For::calls);
  Reached reached;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { reached.socket = connectUnix(NodeAddress{target}.controlSocket()); }))
    fail("no vgpud answers in " + target + ": " + reasonOf(*exception));
  return reached;
}

// Another daemon.
class TargetNode {
 public:
  TargetNode(kj::AsyncIoContext& io, Reached reached)
      : relay(std::move(reached.relay)),
        stream(io.lowLevelProvider->wrapSocketFd(kj::mv(reached.socket))),
        rpc(*stream),
        client(rpc.bootstrap().castAs<control::Node>()) {}

  control::Node::Client& node() { return client; }

 private:
  std::unique_ptr<NodeRelay> relay;
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyClient rpc;
  control::Node::Client client;
};

class Migration final : public kj::Refcounted {
 public:
  Migration(Sessions& sessions, Session& session, MigrateOptions asked, control::Progress::Client progress)
      : sessions(sessions),
        session(&session),
        id(session.id),
        options(std::move(asked)),
        elsewhere(parseEndpoint(options.target)),
        progress(kj::mv(progress)),
        worker(workerOf(session)),
        folder(kj::heap<TargetFolder>(sessions.files)),
        workerExit(worker.exited()),
        start(now()) {
    sessions.exchange.requireAlone(id);
    if (elsewhere && session.place.exists() && !options.withMachine)
      fail("the program of session " + id + " is in a virtual machine, guest " + session.place.guest +
           ", whose memory it shares with this host: it goes to another host with that machine (vgpuctl machine follow)");
  }
  ~Migration() noexcept(false) {
    if (!isMoving) abandon();
  }
  KJ_DISALLOW_COPY(Migration);

  // Until the session is complete at the target.
  kj::Promise<void> prepare() {
    return begin().then([this] { return advance(); }).then([this] { return hold(); });
  }

  // Until the target has said that it takes the session.
  kj::Promise<void> begin() {
    return sessions.files.run([elsewhere = elsewhere, target = options.target] { return connectNode(elsewhere, target); })
        .then([this](Reached&& reached) {
          if (!isTrusted(peerOf(reached.socket))) fail("the vgpud in " + options.target + " belongs to another user");
          peer = kj::heap<TargetNode>(sessions.io, kj::mv(reached));
          return greet();
        })
        .then([this] { return announce(); });
  }

  // While the program runs, the first time also to connect with the target: sends what the target does not have.
  kj::Promise<void> advance() {
    session->askForObjects();
    if (source != nullptr) return runRounds().then([this] { return sendFilesAhead(); });
    return meet()
        .then([this] { return openFolder(); })
        .then([this] {
          faultPoint("migrate.prepared");
          return sendAhead();
        })
        .then([this] { return sendFilesAhead(); })
        .then([] { faultPoint("migrate.sent-ahead"); });
  }

  // Holds the program, and sends the rest.
  kj::Promise<void> hold() {
    isHeld = true;
    heldAt = now();
    result.report.clock = {};  // what came before is no part of the time for which the program is held
    return session->closeGate(options.timeoutSeconds)
        .then([this](uint64_t) {
          result.report.end("gate");
          return capture();
        })
        .then([this]() -> kj::Promise<void> {
          if (!isFar()) return kj::READY_NOW;
          return departing->sendRest(KJ_ASSERT_NONNULL(arrival)).then([this] { result.report.end("files"); });
        });
  }

  // After hold(), with the machine: the target has all but the program's memory then, and that goes with the machine's.
  kj::Promise<void> makeReady() {
    auto request = KJ_ASSERT_NONNULL(arrival).restoreRequest();
    request.setProgress(progress);
    return request.send().ignoreResult().then([this] {
      isTold = true;
      session->move();  // before the program is somewhere where this cannot be said
      faultPoint("machine.ready");
      return session->rewrite();
    });
  }
  bool isReady() const { return isTold; }
  // From then on: rejects when the target cannot take the session any more.
  kj::Promise<void> watch() {
    auto watching = KJ_ASSERT_NONNULL(arrival).watchRequest().send().ignoreResult();
    return watching.catch_([id = id, target = options.target](kj::Exception&& exception) -> kj::Promise<void> {
      spdlog::warn("session {} is not ready at {} any more: {}", id, target, reasonOf(exception));
      return kj::mv(exception);
    });
  }
  bool goesWithMachine() const { return options.withMachine; }

  // The machine runs here again: the session stays.
  void giveUp() {
    givenUp.fulfiller->rejectIfThrows([this] { fail("the machine of session " + id + " runs here again"); });
  }

  // From here on the program may be elsewhere; this does not use the session unless it stays.
  kj::Promise<Migrated> move() {
    faultPoint("migrate.captured");
    isMoving = true;
    session->state = control::State::RESUMING;
    if (!isTold) session->move();
    auto taken = sessions.takeWorker(*session);
    held = kj::mv(KJ_ASSERT_NONNULL(taken));
    auto request = KJ_ASSERT_NONNULL(arrival).completeRequest();
    if (!isFar()) request.setDirectory(reader(path));
    request.setProgress(progress);
    faultPoint("migrate.moving");
    auto completed = request.send().then([this](capnp::Response<control::Arrival::CompleteResults>&& results) {
      result.device = results.getSession().getDevice().cStr();
      result.report.takePhases(results.getReport(), "take over", "target ");
    });
    return completed.exclusiveJoin(kj::mv(givenUp.promise))
        .then([this] { return finish(); }, [this](kj::Exception&& exception) { return comeBack(kj::mv(exception)); });
  }

 private:
  // Whether the target gets files and a program's relay of its own.
  bool isFar() const { return elsewhere || options.withMachine; }
  static WorkerProcess& workerOf(Session& session) {
    KJ_IF_MAYBE (worker, session.worker) {
      if (session.state == control::State::RUNNING) return **worker;
    }
    if (session.state == control::State::RESUMING) session.refuseAsBusy();
    fail("session " + session.id + " does not run: resume it before it can be migrated");
  }

  kj::Promise<void> greet() {
    auto request = peer->node().helloRequest();
    request.setVersion(control::VERSION);
    return request.send().then([this](capnp::Response<control::Node::HelloResults>&& hello) {
      if (hello.getDaemon() == sessions.daemon.c_str()) fail("session " + id + " is on that node already");
      streamSocket = std::string(hello.getRunDirectory()) + "/" + streamsSocketName;
    });
  }

  kj::Promise<void> announce() {
    auto request = peer->node().receiveRequest();
    session->describe(request.initSession());
    request.setSnapshotVersion(snapshot::snapshotVersion);
    request.setIsElsewhere(isFar());
    auto& devices = sessions.pool.devices();
    auto list = request.initDevices(static_cast<unsigned>(devices.size()));
    for (unsigned i = 0; i < devices.size(); ++i) {
      list[i].setOrdinal(devices[i].ordinal);
      list[i].setName(reader(devices[i].name));
      list[i].setMemoryBytes(devices[i].memoryBytes);
    }
    return request.send().then([this](capnp::Response<control::Node::ReceiveResults>&& results) {
      arrival = results.getArrival();
      auto bytes = results.getToken();
      token.assign(bytes.asChars().begin(), bytes.size());
    });
  }

  // The streams, and the relay beside the program, come to the target.
  kj::Promise<void> meet() {
    auto approached =
        elsewhere && !options.withMachine ? session->approach(elsewhere->text(), token) : kj::Promise<void>(kj::READY_NOW);
    return approached
        .then([this] {
          return sessions.files.run([elsewhere = elsewhere, path = streamSocket, token = token] {
            std::vector<Reached> all;
            for (size_t i = 0; i < migrationStreams; ++i) all.push_back(connectStream(elsewhere, path, token));
            return all;
          });
        })
        .then([this](std::vector<Reached>&& all) {
          streams = std::move(all);
          return KJ_ASSERT_NONNULL(arrival).beginRequest().send().ignoreResult();
        });
  }

  // A folder of the daemon's own, as for a new worker.
  kj::Promise<void> openFolder() {
    return state.make(sessions.files, sessions.directory.renewals(), id + "-" + newSessionId(), session->pid)
        .then([this] {
          path = state.path() + "/snapshot";
          kj::AutoCloseFd arena;
          if (isFar()) arena = duplicate(session->hostArena);  // else the target's worker gets it
          departing = kj::heap<DepartingFiles>(sessions.files, path, kj::mv(arena));
          return folder->open(path);
        })
        .then([this](kj::AutoCloseFd&& fd) { target = kj::mv(fd); });
  }

  kj::Promise<void> sendAhead() {
    isBegun = true;
    auto request = worker.remote().sendAheadRequest();
    auto list = request.initStreams(static_cast<unsigned>(streams.size()));
    for (unsigned i = 0; i < streams.size(); ++i) list.set(i, kj::heap<PassedDescriptor>(kj::mv(streams[i].socket)));
    request.setDirectory(reader(path));
    request.setObjects(reader(session->directory->path()));
    request.setTarget(kj::heap<PassedDescriptor>(kj::mv(target)));
    request.setDowntimeSeconds(options.downtimeSeconds);
    request.setProgress(progress);
    return worker.orExit(request.send().then(
        [this](capnp::Response<control::Worker::SendAheadResults>&& results) { source = results.getSource(); }));
  }

  kj::Promise<void> runRounds() {
    auto request = KJ_ASSERT_NONNULL(source).advanceRequest();
    request.setDowntimeSeconds(options.downtimeSeconds);
    request.setProgress(progress);
    return worker.orExit(request.send().ignoreResult());
  }

  // Pinned memory. Memory changes meanwhile: if that takes long, there are rounds again.
  kj::Promise<void> sendFilesAhead(unsigned timesAgain = mostFileRounds) {
    if (!isFar()) return kj::READY_NOW;
    auto sent = departing->sendAhead(KJ_ASSERT_NONNULL(arrival));
    return sent.then([this, timesAgain, begun = now()]() -> kj::Promise<void> {
      if (timesAgain == 0 || secondsSince(begun) <= options.downtimeSeconds * shareOfFiles) return kj::READY_NOW;
      return runRounds().then([this, timesAgain] { return sendFilesAhead(timesAgain - 1); });
    });
  }

  kj::Promise<void> capture() {
    auto quiesced = worker.quiesce(sessions.io.provider->getTimer(), progress, options.timeoutSeconds);
    return quiesced.then([this] {
      result.report.end("quiesce");
      sessions.exchange.requireAlone(id);  // it may have opened something since it was asked for
      auto request = KJ_ASSERT_NONNULL(source).captureRequest();
      session->describe(request.initSession());
      request.setReattach(reader(session->reattach));
      request.setProgress(progress);
      return worker.orExit(request.send().then([this](capnp::Response<control::MigrationSource::CaptureResults>&& results) {
        result.report.take(results.getReport(), "capture");
      }));
    });
  }

  kj::Promise<Migrated> finish() {
    faultPoint("migrate.moved");
    result.report.gateSeconds = secondsSince(heldAt);
    result.report.seconds = secondsSince(start);
    spdlog::info("session {} is at {}; its program was held for {:.3f} s", id, options.target, result.report.gateSeconds);
    removeFolderAfter(kj::READY_NOW);
    source = nullptr;
    if (options.withMachine)
      KJ_IF_MAYBE (known, sessions.find(id)) sessions.spawn(known->gone().exclusiveJoin(known->leave()));
    return held->stop().then([this] { return kj::mv(result); });
  }

  // First the snapshot in it: two that remove the same files get into each other's way.
  void removeFolderAfter(kj::Promise<void> writerEnded) {
    auto cleared = TargetFolder::discardAfter(kj::mv(writerEnded), kj::mv(folder));
    auto taken = cleared.then([made = state.take()]() mutable { return kj::mv(made); });
    sessions.spawn(taken.then([&sessions = sessions](StateDirectory::Shared&& made) {
      if (made != nullptr) sessions.remove(std::move(made));
    }));
  }

  // The target has failed, or cannot be asked any more: the program knows whether it has the session.
  kj::Promise<Migrated> comeBack(kj::Exception&& exception) {
    if (options.withMachine) arrival = nullptr;  // whose worker would wait for the machine
    kj::Promise<bool> answered = false;
    KJ_IF_MAYBE (known, sessions.find(id)) answered = known->stay().catch_([](kj::Exception&&) { return false; });
    return answered.then([this, exception = kj::mv(exception)](bool isHere) mutable -> kj::Promise<Migrated> {
      KJ_IF_MAYBE (known, sessions.find(id)) {
        if (isHere) return stay(*known, kj::mv(exception));
        if (known->moved) return finish();
      }
      removeFolderAfter(kj::READY_NOW);  // the session has ended meanwhile
      return kj::mv(exception);
    });
  }

  kj::Promise<Migrated> stay(Session& here, kj::Exception&& exception) {
    spdlog::warn("session {} stays here: {}", id, reasonOf(exception));
    sessions.giveWorker(here, kj::mv(held));
    here.state = control::State::RUNNING;
    isMoving = false;
    abandon();
    return kj::mv(exception);
  }

  // The worker and the program go on.
  void abandon() {
    source = nullptr;
    kj::Promise<void> writerEnded = kj::READY_NOW;
    KJ_IF_MAYBE (known, sessions.find(id)) {
      if (known->ended || known->worker == nullptr) {
        writerEnded = workerExit.ignoreResult();
      } else {
        known->forgetSuccessor();
        if (isBegun) writerEnded = worker.goOn();
        if (known->isMoving) {
          sessions.spawn(known->exclusively(takeBack(sessions, id)));
        } else if (isHeld) {
          known->openGate();
        }
      }
    }
    isMoving = true;  // there is nothing more to undo
    removeFolderAfter(kj::mv(writerEnded));
  }

  // The program has been told that it moves, and will not.
  static kj::Promise<void> takeBack(Sessions& sessions, std::string id) {
    return KJ_ASSERT_NONNULL(sessions.find(id)).stay().then([&sessions, id](bool isHere) {
      if (!isHere) return;
      KJ_IF_MAYBE (known, sessions.find(id)) known->openGate();
    });
  }

  Sessions& sessions;
  Session* const session;  // while it cannot move
  const std::string id;
  const MigrateOptions options;
  const std::optional<Endpoint> elsewhere;  // where the target is, if it may be on another host
  control::Progress::Client progress;
  WorkerProcess& worker;
  kj::Own<WorkerProcess> held;  // the same, while the session may move
  kj::Own<TargetNode> peer;
  kj::Maybe<control::Arrival::Client> arrival;
  kj::Maybe<control::MigrationSource::Client> source;
  std::string streamSocket, token, path;
  std::vector<Reached> streams;  // their sockets are the worker's after a while
  PassingFolder state;
  kj::Own<TargetFolder> folder;
  kj::Own<DepartingFiles> departing;
  kj::AutoCloseFd target;  // on its way to the worker
  kj::Promise<std::string> workerExit;
  kj::TimePoint start, heldAt = start;
  bool isBegun = false, isHeld = false, isTold = false, isMoving = false;
  kj::PromiseFulfillerPair<void> givenUp = kj::newPromiseAndFulfiller<void>();
  Migrated result;
};

// Completes what is prepared; the caller's end cancels nothing any more.
kj::Promise<Migrated> movedFrom(Sessions& sessions, kj::Own<Migration> migration) {
  auto moved = migration->move().attach(kj::addRef(*migration)).fork();
  sessions.spawn(moved.addBranch().ignoreResult().catch_([](kj::Exception&&) {}));
  return moved.addBranch();
}

// A migration whose steps a client takes. The session counts as busy as long as this has it.
class DepartureServer final : public control::Departure::Server {
 public:
  DepartureServer(Sessions& sessions, Session& session, kj::Own<Migration> migration)
      : sessions(sessions), id(session.id), migration(kj::mv(migration)), occupied(occupy(session)) {}

 protected:
  kj::Promise<void> advance(AdvanceContext context) override {
    context.allowCancellation();
    return step(current().advance()).catch_([this](kj::Exception&& exception) -> kj::Promise<void> {
      end();
      return kj::mv(exception);
    });
  }

  kj::Promise<void> hold(HoldContext context) override {
    context.allowCancellation();
    Migration& mine = current();
    if (!mine.goesWithMachine()) fail("session " + id + " is in no virtual machine's memory: it is held when it leaves");
    auto held = mine.advance().then([&mine] { return mine.hold(); }).then([&mine] { return mine.makeReady(); });
    return step(kj::mv(held)).catch_([this](kj::Exception&& exception) -> kj::Promise<void> {
      end();
      return kj::mv(exception);
    });
  }

  kj::Promise<void> stay(StayContext) override {
    KJ_IF_MAYBE (mine, leaving) (*mine)->giveUp();
    return kj::READY_NOW;
  }

  kj::Promise<void> watch(WatchContext context) override {
    context.allowCancellation();
    KJ_IF_MAYBE (mine, migration) {
      if ((*mine)->isReady()) return (*mine)->watch();
    }
    fail("session " + id + " is not held");
  }

  kj::Promise<void> leave(LeaveContext context) override {
    context.allowCancellation();
    Migration& mine = current();
    if (mine.goesWithMachine()) {
      if (!mine.isReady()) fail("session " + id + " must be held before its machine stops");
      leaving = kj::addRef(mine);
    }
    auto held = mine.isReady() ? kj::Promise<void>(kj::READY_NOW) : mine.advance().then([&mine] { return mine.hold(); });
    return step(kj::mv(held))
        .then([this] { return movedFrom(sessions, KJ_ASSERT_NONNULL(end())); },
              [this](kj::Exception&& exception) -> kj::Promise<Migrated> {
                end();
                return kj::mv(exception);
              })
        .then([context](Migrated&& migrated) mutable {
          context.getResults().initSession().setDevice(reader(migrated.device));
          migrated.report.give(context.getResults().initReport());
        });
  }

 private:
  kj::Promise<void> occupy(Session& session) {
    return session.exclusively(kj::Promise<void>(kj::NEVER_DONE))
        .catch_([this](kj::Exception&& exception) {
          why = reasonOf(exception);
          migration = nullptr;
        })
        .eagerlyEvaluate(nullptr);
  }

  Migration& current() {
    KJ_IF_MAYBE (mine, migration) {
      if (!isStepping && sessions.find(id) != nullptr) return **mine;
      fail("a step of the departure of session " + id + " has not ended yet");
    }
    fail("session " + id + " does not depart any more: " + why);
  }

  kj::Promise<void> step(kj::Promise<void> work) {
    isStepping = true;
    auto mine = kj::addRef(*KJ_ASSERT_NONNULL(migration));
    auto kept = KJ_ASSERT_NONNULL(sessions.find(id)).exclusively(work.attach(kj::mv(mine)));
    return kept.attach(kj::defer([this] { isStepping = false; }));
  }

  kj::Maybe<kj::Own<Migration>> end() {
    why = "it has left, or could not";
    occupied = nullptr;
    return kj::mv(migration);
  }

  Sessions& sessions;
  const std::string id;
  kj::Maybe<kj::Own<Migration>> migration;  // until it is over
  kj::Maybe<kj::Own<Migration>> leaving;    // with its machine
  std::string why;                          // it is
  bool isStepping = false;
  kj::Promise<void> occupied;
};

}  // namespace

kj::Promise<Migrated> migrate(Sessions& sessions, Session& session, MigrateOptions options, control::Progress::Client progress) {
  session.requireIdle();
  auto migration = kj::refcounted<Migration>(sessions, session, std::move(options), kj::mv(progress));
  auto prepared = session.exclusively(migration->prepare());
  return prepared.then([&sessions, migration = kj::mv(migration)]() mutable { return movedFrom(sessions, kj::mv(migration)); });
}

kj::Promise<control::Departure::Client> depart(Sessions& sessions, Session& session, MigrateOptions options,
                                               control::Progress::Client progress) {
  session.requireIdle();
  options.withMachine = session.place.exists();
  auto migration = kj::refcounted<Migration>(sessions, session, std::move(options), kj::mv(progress));
  auto& begun = *migration;
  auto server = kj::heap<DepartureServer>(sessions, session, kj::mv(migration));
  auto taken = session.exclusively(begun.begin().attach(kj::addRef(begun)));
  return taken.then([server = kj::mv(server)]() mutable -> control::Departure::Client { return kj::mv(server); });
}

}  // namespace vgpu::daemon
