#include "tools/vgpud/suspend.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "checkpoint/directory.h"
#include "tools/common/reason.h"
#include "vgpu/wire/fault-point.h"
#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

namespace fs = std::filesystem;

capnp::Text::Reader reader(const std::string& text) { return {text.c_str(), text.size()}; }

void removeContents(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) fs::remove_all(entry.path(), error);
}

// The folder that a snapshot goes to: there and free, or newly made. Known before the program is stopped.
class Target {
 public:
  explicit Target(const std::string& path) : path(path) {
    if (!path.starts_with('/')) fail("a snapshot's directory must be an absolute path, not \"" + path + "\"");
    made = mkdir(path.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) fail("cannot make the snapshot's directory " + path + ": " + strerror(errno));
    std::error_code error;
    if (!fs::is_directory(path, error)) fail("cannot use " + path + " for a snapshot: it is no directory");
    checkpoint::requireFree(path);
    if (access(path.c_str(), W_OK | X_OK) != 0) fail("cannot write a snapshot to " + path + ": " + strerror(errno));
  }

  // Removes what a worker that is gone left behind, so that nobody takes it for a snapshot.
  void clear() const {
    removeContents(path);
    if (made) rmdir(path.c_str());
  }
  // A worker that lives has removed what it wrote, but the folder is ours.
  void clearIfMade() const {
    if (made) rmdir(path.c_str());
  }

  const std::string path;

 private:
  bool made = false;
};

class Suspension {
 public:
  Suspension(Sessions& sessions, Session& session, std::string directory, control::Progress::Client progress)
      : sessions(sessions),
        session(session),
        worker(*getWorker(session)),
        target(directory),
        progress(kj::mv(progress)),
        workerExit(worker.exited()),
        start(now()) {
    session.state = control::State::SUSPENDING;
  }
  ~Suspension() noexcept(false) {
    if (!done) abandon();
  }
  KJ_DISALLOW_COPY(Suspension);

  kj::Promise<OperationReport> run() {
    gateAsked = true;
    auto closed = session.closeGate();
    faultPoint("suspend.gate-asked");
    return closed
        .then([this](uint64_t) {
          faultPoint("suspend.gate-closed");
          quiesceAsked = true;
          return worker.orExit(worker.remote().quiesceRequest().send().ignoreResult());
        })
        .then([this] {
          report.gateSeconds = (now() - start) / (1 * kj::NANOSECONDS) / 1e9;
          return save();
        })
        .then([this] { return finish(); })
        .then([this] {
          report.seconds = (now() - start) / (1 * kj::NANOSECONDS) / 1e9;
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

  kj::TimePoint now() const { return kj::systemPreciseMonotonicClock().now(); }

  kj::Promise<void> save() {
    auto request = worker.remote().saveRequest();
    request.setDirectory(reader(target.path));
    request.setObjects(reader(session.directory));
    session.describe(request.initSession());
    request.setReattach(reader(session.reattach));
    request.setProgress(progress);
    return worker.orExit(request.send().then(
        [this](capnp::Response<control::Worker::SaveResults>&& answer) {
          faultPoint("suspend.saved");
          report.take(answer.getReport());
        }));
  }

  // The snapshot is complete: from here on there is no way back, and none is needed.
  kj::Promise<void> finish() {
    done = true;
    session.state = control::State::SUSPENDED;
    session.snapshot = target.path;
    session.link->send([this](control::ToSession::Builder message) { message.setSuspended(reader(target.path)); });
    spdlog::info("session {} ({}, pid {}) is suspended to {}", session.id, session.name, session.pid, target.path);
    faultPoint("suspend.program-told");
    return sessions.releaseWorker(session).then([] { faultPoint("suspend.worker-released"); });
  }

  void abandon() {
    if (session.ended || session.worker == nullptr) {
      // The worker is gone, or about to be, and cannot remove what it wrote.
      return sessions.spawn(workerExit.ignoreResult().then([target = target] { target.clear(); }));
    }
    if (quiesceAsked) {
      auto proceed = worker.remote().proceedRequest().send().ignoreResult();
      sessions.spawn(proceed.then(
          [target = target]() -> kj::Promise<void> {
            target.clearIfMade();
            return kj::READY_NOW;
          },
          [target = target, exit = kj::mv(workerExit)](kj::Exception&&) mutable -> kj::Promise<void> {
            return exit.ignoreResult().then([target] { target.clear(); });
          }));
    } else {
      target.clearIfMade();
    }
    if (gateAsked) session.openGate();
    session.state = control::State::RUNNING;
  }

  Sessions& sessions;
  Session& session;
  WorkerProcess& worker;
  Target target;
  control::Progress::Client progress;
  kj::Promise<std::string> workerExit;
  kj::TimePoint start;
  bool gateAsked = false, quiesceAsked = false, done = false;
  OperationReport report;
};

}  // namespace

void OperationReport::take(control::Report::Reader from) {
  deviceBytes = from.getDeviceBytes();
  storedBytes = from.getStoredBytes();
  objects = from.getObjects();
  tailFrames = from.getTailFrames();
}

void OperationReport::give(control::Report::Builder to) const {
  to.setSeconds(seconds);
  to.setGateSeconds(gateSeconds);
  to.setDeviceBytes(deviceBytes);
  to.setStoredBytes(storedBytes);
  to.setObjects(objects);
  to.setTailFrames(tailFrames);
}

kj::Promise<OperationReport> suspend(Sessions& sessions, Session& session, std::string directory,
                                     control::Progress::Client progress) {
  session.requireIdle();
  auto suspension = kj::heap<Suspension>(sessions, session, std::move(directory), kj::mv(progress));
  auto work = suspension->run();
  return session.exclusively(work.attach(kj::mv(suspension)));
}

}  // namespace vgpu
