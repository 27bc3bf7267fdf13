#include "tools/vgpud/migration.h"

#include <spdlog/spdlog.h>

#include <memory>

#include "tools/common/arrival.h"
#include "tools/common/descriptor.h"
#include "tools/common/reason.h"
#include "tools/vgpud/elapsed.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::daemon {
namespace {

// The program is held only if sending files after the last round took at most this share of the permitted downtime.
constexpr double shareOfFiles = 0.25;
// A program that keeps loading images would otherwise never end the rounds.
constexpr unsigned mostFileRounds = 5;

}  // namespace

Migration::Migration(Sessions& sessions, Session& session, MigrateOptions asked, control::Progress::Client progress)
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
         ", whose memory it shares with this host: it moves to another host with that machine (vgpuctl machine follow)");
}

Migration::~Migration() noexcept(false) {
  if (!isMoving) abandon();
}

kj::Promise<void> Migration::prepare() {
  return begin().then([this] { return advance(); }).then([this] { return hold(); });
}

kj::Promise<void> Migration::begin() {
  return sessions.files.run([elsewhere = elsewhere, target = options.target] { return connectNode(elsewhere, target); })
      .then([this](Reached&& reached) {
        if (!isTrusted(peerOf(reached.socket))) fail("the vgpud in " + options.target + " belongs to another user");
        peer = kj::heap<TargetNode>(sessions.io, kj::mv(reached));
        return greet();
      })
      .then([this] { return announce(); });
}

kj::Promise<void> Migration::advance() {
  session->askForObjects();
  if (source != nullptr) return runRounds().then([this] { return sendFilesAhead(mostFileRounds); });
  return meet()
      .then([this] { return openFolder(); })
      .then([this] {
        faultPoint("migrate.prepared");
        return sendAhead();
      })
      .then([this] { return sendFilesAhead(mostFileRounds); })
      .then([] { faultPoint("migrate.sent-ahead"); });
}

kj::Promise<void> Migration::hold() {
  isHeld = true;
  heldAt = now();
  result.report.clock = {};  // earlier phases do not count as time in which the program is held
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

kj::Promise<void> Migration::makeReady() {
  auto request = KJ_ASSERT_NONNULL(arrival).restoreRequest();
  request.setProgress(progress);
  return request.send().ignoreResult().then([this] {
    isTold = true;
    session->move();  // must be said before the program may be out of reach
    faultPoint("machine.ready");
    return session->rewrite();
  });
}

kj::Promise<void> Migration::watch() {
  auto watching = KJ_ASSERT_NONNULL(arrival).watchRequest().send().ignoreResult();
  return watching.catch_([id = id, target = options.target](kj::Exception&& exception) -> kj::Promise<void> {
    spdlog::warn("session {} is no longer ready at {}: {}", id, target, reasonOf(exception));
    return kj::mv(exception);
  });
}

void Migration::giveUp() {
  givenUp.fulfiller->rejectIfThrows([this] { fail("the machine of session " + id + " runs here again"); });
}

kj::Promise<Migrated> Migration::move() {
  faultPoint("migrate.captured");
  isMoving = true;
  hasMoved = session->moved;
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

WorkerProcess& Migration::workerOf(Session& session) {
  KJ_IF_MAYBE (worker, session.worker) {
    if (session.state == control::State::RUNNING) return **worker;
  }
  if (session.state == control::State::RESUMING) session.refuseAsBusy();
  fail("session " + session.id + " is not running: resume it first, then migrate it");
}

kj::Promise<void> Migration::greet() {
  auto request = peer->node().helloRequest();
  request.setVersion(control::VERSION);
  return request.send().then([this](capnp::Response<control::Node::HelloResults>&& hello) {
    if (hello.getDaemon() == sessions.daemon.c_str()) fail("session " + id + " is on that node already");
    streamSocket = std::string(hello.getRunDirectory()) + "/" + streamsSocketName;
  });
}

kj::Promise<void> Migration::announce() {
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

kj::Promise<void> Migration::meet() {
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

kj::Promise<void> Migration::openFolder() {
  return state.make(sessions.files, sessions.directory.renewals(), id + "-" + newSessionId(), session->pid)
      .then([this] {
        path = state.path() + "/snapshot";
        kj::AutoCloseFd arena;
        if (isFar()) arena = duplicate(session->hostArena);  // otherwise the target's worker gets it
        departing = kj::heap<DepartingFiles>(sessions.files, path, kj::mv(arena));
        return folder->open(path);
      })
      .then([this](kj::AutoCloseFd&& fd) { target = kj::mv(fd); });
}

kj::Promise<void> Migration::sendAhead() {
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

kj::Promise<void> Migration::runRounds() {
  auto request = KJ_ASSERT_NONNULL(source).advanceRequest();
  request.setDowntimeSeconds(options.downtimeSeconds);
  request.setProgress(progress);
  return worker.orExit(request.send().ignoreResult());
}

kj::Promise<void> Migration::sendFilesAhead(unsigned timesAgain) {
  if (!isFar()) return kj::READY_NOW;
  auto sent = departing->sendAhead(KJ_ASSERT_NONNULL(arrival));
  return sent.then([this, timesAgain, begun = now()]() -> kj::Promise<void> {
    if (timesAgain == 0 || secondsSince(begun) <= options.downtimeSeconds * shareOfFiles) return kj::READY_NOW;
    return runRounds().then([this, timesAgain] { return sendFilesAhead(timesAgain - 1); });
  });
}

kj::Promise<void> Migration::capture() {
  auto quiesced = worker.quiesce(sessions.io.provider->getTimer(), progress, options.timeoutSeconds);
  return quiesced.then([this] {
    result.report.end("quiesce");
    sessions.exchange.requireAlone(id);  // it may have opened something since the request
    auto request = KJ_ASSERT_NONNULL(source).captureRequest();
    session->describe(request.initSession());
    request.setReattach(reader(session->reattach));
    request.setProgress(progress);
    return worker.orExit(request.send().then([this](capnp::Response<control::MigrationSource::CaptureResults>&& results) {
      result.report.take(results.getReport(), "capture");
    }));
  });
}

kj::Promise<Migrated> Migration::finish() {
  faultPoint("migrate.moved");
  result.report.gateSeconds = secondsSince(heldAt);
  result.report.seconds = secondsSince(start);
  spdlog::info("session {} is at {}; its program was held for {:.3f} s", id, options.target, result.report.gateSeconds);
  removeFolderAfter(kj::READY_NOW);
  source = nullptr;
  sessions.workerMoved(id, *held);
  if (options.withMachine)
    KJ_IF_MAYBE (known, sessions.find(id)) sessions.spawn(known->gone().exclusiveJoin(known->leave()));
  return held->stop().then([this] { return kj::mv(result); });
}

void Migration::removeFolderAfter(kj::Promise<void> writerEnded) {
  auto cleared = TargetFolder::discardAfter(kj::mv(writerEnded), kj::mv(folder));
  auto taken = cleared.then([made = state.take()]() mutable { return kj::mv(made); });
  sessions.spawn(taken.then([&sessions = sessions](StateDirectory::Shared&& made) {
    if (made != nullptr) sessions.remove(std::move(made));
  }));
}

kj::Promise<Migrated> Migration::comeBack(kj::Exception&& exception) {
  if (options.withMachine) arrival = nullptr;  // otherwise its worker would wait for the machine
  kj::Promise<bool> answered = false;
  KJ_IF_MAYBE (known, sessions.find(id)) answered = known->stay().catch_([](kj::Exception&&) { return false; });
  return answered.then([this, exception = kj::mv(exception)](bool isHere) mutable -> kj::Promise<Migrated> {
    KJ_IF_MAYBE (known, sessions.find(id)) {
      if (isHere) return stay(*known, kj::mv(exception));
    }
    if (*hasMoved) return finishUnanswered(exception);
    sessions.workerMoved(id, *held);
    removeFolderAfter(kj::READY_NOW);  // the session has ended meanwhile
    return kj::mv(exception);
  });
}

kj::Promise<Migrated> Migration::finishUnanswered(const kj::Exception& exception) {
  spdlog::warn("session {} has moved to {}, which did not confirm it: {}", id, options.target, reasonOf(exception));
  result.device = "a GPU";
  result.report.end("take over");
  return finish();
}

kj::Promise<Migrated> Migration::stay(Session& here, kj::Exception&& exception) {
  spdlog::warn("session {} stays here: {}", id, reasonOf(exception));
  sessions.giveWorker(here, kj::mv(held));
  here.state = control::State::RUNNING;
  isMoving = false;
  abandon();
  return kj::mv(exception);
}

void Migration::abandon() {
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
  isMoving = true;  // nothing can be undone any more
  removeFolderAfter(kj::mv(writerEnded));
}

kj::Promise<void> Migration::takeBack(Sessions& sessions, std::string id) {
  return KJ_ASSERT_NONNULL(sessions.find(id)).stay().then([&sessions, id](bool isHere) {
    if (!isHere) return;
    KJ_IF_MAYBE (known, sessions.find(id)) known->openGate();
  });
}

}  // namespace vgpu::daemon
