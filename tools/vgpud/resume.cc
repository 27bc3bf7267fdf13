#include "tools/vgpud/resume.h"

#include <spdlog/spdlog.h>

#include "checkpoint/snapshot.h"
#include "tools/common/descriptor.h"
#include "tools/common/reason.h"
#include "vgpu/wire/fault-point.h"
#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

capnp::Text::Reader reader(const std::string& text) { return {text.c_str(), text.size()}; }

class Resumption {
 public:
  Resumption(Sessions& sessions, std::string path, control::Progress::Client caller)
      : sessions(sessions), directory(std::move(path)), progress(kj::mv(caller)), start(now()) {
    if (!directory.starts_with('/')) fail("a snapshot's directory must be an absolute path, not \"" + directory + "\"");
    identity = checkpoint::readIdentity(directory);
    KJ_IF_MAYBE (known, sessions.find(identity.session)) {
      known->requireIdle();
      if (known->state != control::State::SUSPENDED) {
        fail("session " + identity.session + " of this snapshot is not suspended: its program (pid " +
             std::to_string(known->pid) + ") runs on this node");
      }
    }
    if (!sessions.enter(identity.session)) fail("session " + identity.session + " is being resumed already");
    entered = true;
    setKnownState(control::State::RESUMING);
  }

  ~Resumption() noexcept(false) {
    if (!entered) return;
    sessions.leave(identity.session);
    if (done) return;
    setKnownState(control::State::SUSPENDED);
    std::string why = "the session could not be resumed";
    if (session.get() != nullptr) sessions.refuse(kj::mv(session), why);
    if (link.get() != nullptr) sessions.refuse(kj::mv(link), why);
  }
  KJ_DISALLOW_COPY(Resumption);

  kj::Promise<Resumed> run() {
    link = meetProgram();
    faultPoint("resume.met");
    return link->receiveOpen()
        .then([this](ProgramOpen&& open) {
          faultPoint("resume.opened");
          if (open.session != identity.session) {
            fail("the program that answers has session " + open.session + ", the snapshot is of " + identity.session);
          }
          session = kj::heap<Session>(sessions.io, sessions.processes, kj::mv(link), open);
          return sessions.establish(session, restore(kj::mv(open)));
        })
        .then([this] {
          faultPoint("resume.daemon-committed");
          done = true;
          report.seconds = (now() - start) / kj::NANOSECONDS / 1e9;
          return Resumed{identity.session, report};
        });
  }

 private:
  kj::TimePoint now() const { return kj::systemPreciseMonotonicClock().now(); }

  // Connects to where the program waits, and says who is looking for it.
  kj::Own<ProgramLink> meetProgram() {
    std::string program = identity.program + " (pid " + std::to_string(identity.pid) + ")";
    auto caught = kj::runCatchingExceptions(
        [&] { link = kj::heap<ProgramLink>(sessions.io, connectAbstract(identity.reattach)); });
    KJ_IF_MAYBE (exception, caught) {
      if (exception->getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(*exception));
      fail("the program of this snapshot, " + program + ", has ended; the snapshot cannot be resumed into it");
    }
    if (!isTrusted(link->peer())) fail("the program of this snapshot, " + program + ", belongs to another user");
    link->send([this](control::ToSession::Builder message) { message.setReattach(reader(identity.session)); });
    return kj::mv(link);
  }

  kj::Promise<kj::Own<WorkerProcess>> restore(ProgramOpen open) {
    return sessions.pool.take().then([this, open = kj::mv(open)](kj::Own<WorkerProcess>&& worker) mutable {
      auto request = worker->remote().restoreRequest();
      request.setDirectory(reader(directory));
      request.setSegment(kj::heap<PassedDescriptor>(kj::mv(open.segment)));
      request.setHostArena(kj::heap<PassedDescriptor>(kj::mv(open.hostArena)));
      request.setOutput(kj::heap<PassedDescriptor>(kj::mv(open.output)));
      request.setProgress(progress);
      auto answer = worker->orExit(request.send().then(
          [this](capnp::Response<control::Worker::RestoreResults>&& results) {
            faultPoint("resume.restored");
            report.take(results.getReport());
          }));
      return answer.then([worker = kj::mv(worker)]() mutable { return kj::mv(worker); });
    });
  }

  void setKnownState(control::State state) {
    KJ_IF_MAYBE (known, sessions.find(identity.session)) {
      known->state = state;
    }
  }

  Sessions& sessions;
  std::string directory;
  control::Progress::Client progress;
  kj::TimePoint start;
  checkpoint::Identity identity;
  kj::Own<ProgramLink> link;  // until there is a session, which owns it
  kj::Own<Session> session;   // until the table owns it
  bool entered = false, done = false;
  OperationReport report;
};

}  // namespace

kj::Promise<Resumed> resume(Sessions& sessions, std::string directory, control::Progress::Client progress) {
  auto resumption = kj::heap<Resumption>(sessions, std::move(directory), kj::mv(progress));
  auto work = resumption->run();
  return work.attach(kj::mv(resumption));
}

}  // namespace vgpu
