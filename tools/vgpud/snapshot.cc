#include "tools/vgpud/snapshot.h"

#include <spdlog/spdlog.h>

#include "tools/common/descriptor.h"
#include "tools/vgpud/elapsed.h"
#include "tools/vgpud/target-folder.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"

namespace vgpu::daemon {
namespace {

WorkerProcess& workerOf(Session& session) {
  KJ_IF_MAYBE (worker, session.worker) {
    if (session.state == control::State::RUNNING) return **worker;
  }
  fail("session " + session.id + " is not running, so there is nothing to save");
}

class Snapshotting {
 public:
  Snapshotting(Sessions& sessions, Session& session, std::string path, control::Progress::Client progress,
               unsigned timeoutSeconds)
      : sessions(sessions),
        session(session),
        worker(workerOf(session)),
        path(std::move(path)),
        progress(kj::mv(progress)),
        timeoutSeconds(timeoutSeconds),
        folder(kj::heap<TargetFolder>(sessions.files)),
        workerExit(worker.exited()),
        start(now()) {
    if (!this->path.starts_with('/')) fail("a snapshot's directory must be an absolute path, not \"" + this->path + "\"");
    sessions.exchange.requireAlone(session.id);
    if (sessions.pinned.exists()) hold = std::make_shared<PinnedChunks::Hold>(sessions.pinned.chunks);
  }
  ~Snapshotting() noexcept(false) {
    if (!done) abandon();
  }
  KJ_DISALLOW_COPY(Snapshotting);

  kj::Promise<OperationReport> run() {
    return folder->open(path)
        .then([this](kj::AutoCloseFd&& target) { return begin(kj::mv(target)); })
        .then([this] {
          isHeld = true;
          heldAt = now();
          return session.closeGate(timeoutSeconds);
        })
        .then([this](uint64_t) {
          faultPoint("snapshot.gate-closed");
          return worker.quiesce(sessions.io.provider->getTimer(), progress, timeoutSeconds);
        })
        .then([this] { return capture(); })
        .then([this] { return release(); })
        .then([this] { return finish(); })
        .then([this] {
          report.seconds = secondsSince(start);
          return report;
        });
  }

 private:
  kj::Promise<void> begin(kj::AutoCloseFd target) {
    isBegun = true;
    auto request = worker.remote().beginSnapshotRequest();
    request.setDirectory(reader(path));
    request.setTarget(kj::heap<PassedDescriptor>(kj::mv(target)));
    request.setProgress(progress);
    return worker.orExit(request.send().then([this](capnp::Response<control::Worker::BeginSnapshotResults>&& results) {
      snapshot = results.getSnapshot();
    }));
  }

  control::LiveSnapshot::Client& begun() { return KJ_ASSERT_NONNULL(snapshot); }

  kj::Promise<void> capture() {
    sessions.exchange.requireAlone(session.id);  // it may have opened something since the request
    auto request = begun().captureRequest();
    request.setObjects(reader(session.directory->path()));
    session.describe(request.initSession());
    request.setReattach(reader(session.reattach));
    request.setProgress(progress);
    if (hold) request.setRoom(kj::heap<PinnedRoomServer>(hold));
    return worker.orExit(request.send().ignoreResult());
  }

  kj::Promise<void> release() {
    return worker.orExit(worker.remote().proceedRequest().send().ignoreResult()).then([this] {
      session.openGate();
      isHeld = false;
      report.gateSeconds = secondsSince(heldAt);
      faultPoint("snapshot.released");
    });
  }

  kj::Promise<void> finish() {
    auto request = begun().finishRequest();
    request.setProgress(progress);
    return worker.orExit(request.send().then([this](capnp::Response<control::LiveSnapshot::FinishResults>&& results) {
      report.take(results.getReport(), "finish");
      faultPoint("snapshot.finished");
      done = true;
      session.memoryIn = path;
      snapshot = nullptr;
      spdlog::info("session {} ({}, pid {}) has a snapshot in {}; it was held for {:.3f} s", session.id, session.name,
                   session.pid, path, report.gateSeconds);
      auto kept = folder->keep();
      sessions.spawn(kept.attach(kj::mv(folder)));
    }));
  }

  // The directory can be cleared when nobody writes there any more: `proceed` is answered after the worker has finished earlier work, or
  // the worker is gone.
  void abandon() {
    snapshot = nullptr;
    kj::Promise<void> writerEnded = kj::READY_NOW;
    if (session.ended || session.worker == nullptr) {
      writerEnded = workerExit.ignoreResult();
    } else {
      if (isBegun) writerEnded = worker.goOn();
      if (isHeld) session.openGate();
    }
    // Until then a GPU may still copy to held memory.
    sessions.spawn(TargetFolder::discardAfter(kj::mv(writerEnded), kj::mv(folder)).attach(kj::mv(hold)));
  }

  Sessions& sessions;
  Session& session;
  WorkerProcess& worker;
  const std::string path;
  control::Progress::Client progress;
  const unsigned timeoutSeconds;
  kj::Own<TargetFolder> folder;
  kj::Promise<std::string> workerExit;
  kj::Maybe<control::LiveSnapshot::Client> snapshot;
  PinnedHold hold;  // null: this node has no pinned memory
  kj::TimePoint start, heldAt = start;
  bool isBegun = false, isHeld = false, done = false;
  OperationReport report;
};

}  // namespace

kj::Promise<OperationReport> snapshotOf(Sessions& sessions, Session& session, std::string directory,
                                        control::Progress::Client progress, unsigned timeoutSeconds) {
  session.requireIdle();
  auto snapshotting = kj::heap<Snapshotting>(sessions, session, std::move(directory), kj::mv(progress), timeoutSeconds);
  auto work = snapshotting->run();
  return session.exclusively(work.attach(kj::mv(snapshotting)));
}

}  // namespace vgpu::daemon
