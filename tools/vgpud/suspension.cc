#include "tools/vgpud/suspension.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "tools/common/descriptor.h"
#include "tools/common/reason.h"
#include "tools/vgpud/background-write.h"
#include "tools/vgpud/remove-snapshot.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::daemon {

kj::Promise<void> SuspendedTogether::othersCleared(Sessions& sessions, std::string first) {
  auto letGo = kj::joinPromises(cleared.releaseAsArray()).catch_([](kj::Exception&&) {});
  return letGo.then([&sessions, folder = folder, others = others, first = std::move(first)]() mutable {
    auto left = sessions.nobodyWaits(first, others);
    return left.then([&sessions, folder = std::move(folder), others = std::move(others), first = std::move(first)] {
      return sessions.files.run([folder, others, first] {
        if (isOnDisk(first)) return;  // it was written at the last moment
        for (auto& id : others) removeSnapshotOf(id, folder + "/" + id);
        rmdir(folder.c_str());  // fails if it contains something
      });
    });
  });
}

Suspension::Suspension(Sessions& sessions, Session& session, std::string path, control::Progress::Client progress,
                       unsigned timeoutSeconds, control::Memory memory, kj::Maybe<kj::Own<SuspendedTogether>> group, bool isFirst)
    : sessions(sessions),
      session(session),
      worker(*getWorker(session)),
      path(std::move(path)),
      progress(kj::mv(progress)),
      timeoutSeconds(timeoutSeconds),
      memory(memory),
      together(kj::mv(group)),
      isFirst(isFirst),
      folder(kj::heap<TargetFolder>(sessions.files)),
      workerExit(worker.exited()),
      start(now()) {
  if (memory != control::Memory::NONE) hold = holdFor(this->path);
  if (!this->path.starts_with('/')) {
    fail("a snapshot's directory must be an absolute path, not \"" + this->path + "\"");
  }
  KJ_IF_MAYBE (group, together) {
    session.together = (*group)->number;
  } else {
    sessions.exchange.requireSuspendable(session.id);
  }
  session.state = control::State::SUSPENDING;
}

Suspension::~Suspension() noexcept(false) {
  if (!done) abandon();
}

kj::Promise<void> Suspension::openFolder() {
  return folder->open(path).then([this](kj::AutoCloseFd&& directory) {
    target = kj::mv(directory);
    report.end("folder");
  });
}

kj::Promise<OperationReport> Suspension::run() {
  return closeGate()
      .then([this](uint64_t) {
        faultPoint("suspend.gate-closed");
        report.end("gate");
        return quiesce();
      })
      .then([this] {
        report.end("quiesce");
        report.gateSeconds = secondsSince(gateAskedAt);
        return allQuiesced();
      })
      .then([this] { return save(); })
      .then([this] { return allSaved(); })
      .then([this] { return release(); })
      .then([this] {
        report.end("release");
        report.seconds = secondsSince(start);
        return report;
      });
}

kj::Own<WorkerProcess>& Suspension::getWorker(Session& session) {
  KJ_IF_MAYBE (worker, session.worker) {
    if (session.state == control::State::RUNNING) return *worker;
  }
  if (session.state == control::State::SUSPENDED) {
    fail("session " + session.id + " is suspended already, to " + session.snapshot);
  }
  if (session.state == control::State::RESUMING) session.refuseAsBusy();
  fail("session " + session.id + " is not running: its worker was lost");
}

PinnedHold Suspension::holdFor(const std::string& directory) {
  if (!sessions.pinned.exists()) fail("this vgpud has no pinned memory: start it with --pinned SIZE");
  if (memory == control::Memory::ONLY && !ChunkStore::around(directory))
    fail("a snapshot in memory keeps its files in a store of snapshots, but " + directory + " is not in one");
  if (sessions.inMemory.has(directory))
    fail("this vgpud still has a snapshot " + directory + " in memory; give this one another name");
  return std::make_shared<PinnedChunks::Hold>(sessions.pinned.chunks);
}

kj::Promise<uint64_t> Suspension::closeGate() {
  gateAsked = true;
  gateAskedAt = now();
  auto closed = session.closeGate(timeoutSeconds);
  faultPoint("suspend.gate-asked");
  return closed;
}

kj::Promise<void> Suspension::quiesce() {
  quiesceAsked = true;
  return worker.quiesce(sessions.io.provider->getTimer(), progress, timeoutSeconds);
}

// From here on no session of the group changes another one's objects. Checked again, because the session may have opened something before
// its gate was closed.
kj::Promise<void> Suspension::allQuiesced() {
  KJ_IF_MAYBE (group, together) return (*group)->quiesced.arrive();
  sessions.exchange.requireSuspendable(session.id);
  return kj::READY_NOW;
}

kj::Promise<void> Suspension::save() {
  auto request = worker.remote().saveRequest();
  request.setDirectory(reader(path));
  request.setObjects(reader(session.directory->path()));
  auto info = request.initSession();
  session.describe(info);
  auto group = sessions.exchange.groupOf(session.id);
  group.erase(session.id);
  auto others = info.initSharesWith(static_cast<unsigned>(group.size()));
  unsigned next = 0;
  for (auto& other : group) others.set(next++, reader(other));
  auto inherited = sessions.exchange.inheritedBy(session.id);
  auto owned = request.initOwned(static_cast<unsigned>(inherited.size()));
  for (unsigned i = 0; i < owned.size(); ++i) owned.set(i, {inherited[i].data(), inherited[i].size()});
  request.setReattach(reader(session.reattach));
  request.setProgress(progress);
  request.setTarget(kj::heap<PassedDescriptor>(kj::mv(target)));
  if (hold) {
    request.setRoom(kj::heap<PinnedRoomServer>(hold));
    request.setPool(reader(sessions.pinned.id()));
  }
  return worker.orExit(request.send().then([this](capnp::Response<control::Worker::SaveResults>&& answer) {
    faultPoint("suspend.saved");
    report.take(answer.getReport(), "save");
  }));
}

kj::Promise<void> Suspension::allSaved() {
  KJ_IF_MAYBE (group, together) return (*group)->saved.arrive();
  complete();
  return kj::READY_NOW;
}

void Suspension::complete() {
  done = true;
  session.together = 0;
  session.state = control::State::SUSPENDED;
  session.snapshot = path;
  session.link->send([this](control::ToSession::Builder message) {
    if (hold)
      message.setSuspendedInMemory(reader(path));
    else
      message.setSuspended(reader(path));
  });
  KJ_IF_MAYBE (group, together) {
    if (hold && !isFirst) {
      auto gone = kj::newPromiseAndFulfiller<void>();
      (*group)->cleared.add(kj::mv(gone.promise));
      folder = folder.attach(kj::defer([letGo = kj::mv(gone.fulfiller)]() mutable { letGo->fulfill(); }));
    }
    if (memory == control::Memory::FIRST && !isFirst) {
      auto written = kj::newPromiseAndFulfiller<void>();
      (*group)->written.add(kj::mv(written.promise));
      onDisk = kj::mv(written.fulfiller);
    }
  }
  spdlog::info("session {} ({}, pid {}) is suspended to {}", session.id, session.name, session.pid, path);
}

kj::Promise<void> Suspension::release() {
  faultPoint("suspend.program-told");
  if (hold) {
    report.memoryBytes = hold->bytes();
    kj::Promise<void> others = kj::READY_NOW;
    KJ_IF_MAYBE (group, together) {
      if (isFirst) others = (*group)->othersCleared(sessions, path);
    }
    const bool toBeWritten = memory == control::Memory::FIRST;
    sessions.inMemory.keep(path, hold, kj::mv(folder), kj::mv(others), toBeWritten);
    if (toBeWritten) sessions.spawn(write().catch_([](kj::Exception&&) {}));  // the error has been logged
  } else {
    auto kept = folder->keep();
    sessions.spawn(kept.attach(kj::mv(folder)));
  }
  // Ending a process takes longer than making it release its session for another program: 30 ms per GiB of pinned memory, page by page, and
  // 50 to 90 ms in addition. A kept worker cannot give objects to other sessions any more.
  bool isKept =
      memory != control::Memory::NONE && sessions.keepsSuspended && together == nullptr && !sessions.exchange.gives(session.id);
  return sessions.retireWorker(session, isKept).then([] { faultPoint("suspend.worker-released"); });
}

kj::Promise<void> Suspension::write() {
  BackgroundWrite work{.session = session.id, .path = path, .hold = kj::mv(hold), .isAlone = together == nullptr};
  KJ_IF_MAYBE (written, onDisk) {
    return writeInBackground(sessions, kj::mv(work))
        .then([written = kj::mv(*written)]() mutable { written->fulfill(); });
  }
  KJ_IF_MAYBE (group, together) {
    work.before = kj::joinPromises((*group)->written.releaseAsArray());
    for (auto& id : (*group)->others) work.whole.push_back({id, (*group)->folder + "/" + id});
  }
  work.whole.push_back({session.id, path});
  return writeInBackground(sessions, kj::mv(work));
}

// The directory can be cleared when nobody writes there any more: the worker has gone on, or is gone.
void Suspension::abandon() {
  kj::Promise<void> writerEnded = kj::READY_NOW;
  session.together = 0;
  if (session.ended || session.worker == nullptr) {
    writerEnded = workerExit.ignoreResult();
  } else {
    if (quiesceAsked) writerEnded = worker.goOn();
    if (gateAsked) session.openGate();
    session.state = control::State::RUNNING;
  }
  KJ_IF_MAYBE (group, together) {
    if (!isFirst) {
      (*group)->cleared.add(TargetFolder::discardAfter(kj::mv(writerEnded), kj::mv(folder)).attach(kj::mv(hold)));
      return;
    }
    auto cleared = (*group)->othersCleared(sessions, path);
    writerEnded = writerEnded.then([cleared = kj::mv(cleared)]() mutable { return kj::mv(cleared); });
  }
  // Until then a GPU may still copy to held memory.
  sessions.spawn(TargetFolder::discardAfter(kj::mv(writerEnded), kj::mv(folder)).attach(kj::mv(hold)));
}

}  // namespace vgpu::daemon
