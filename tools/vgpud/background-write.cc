#include "tools/vgpud/background-write.h"

#include <spdlog/spdlog.h>

#include "tools/common/reason.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"

namespace vgpu::daemon {
namespace {

// The session that is suspended to `path`, or being resumed from there, if there is one.
kj::Maybe<Session&> waitingFor(Sessions& sessions, const std::string& id, const std::string& path) {
  KJ_IF_MAYBE (session, sessions.find(id)) {
    if (session->isSuspendedTo(path)) return *session;
  }
  return nullptr;
}

kj::Promise<void> isWritten(Sessions& sessions, const std::string& id, const std::string& path) {
  faultPoint("write.done");
  spdlog::info("the snapshot {} of session {} is on disk", path, id);
  KJ_IF_MAYBE (session, waitingFor(sessions, id, path)) {
    session->link->send([&](control::ToSession::Builder message) { message.setSuspended(reader(path)); });
  }
  return sessions.inMemory.release(path);
}

kj::Promise<void> isNotWritten(Sessions& sessions, const std::string& id, const std::string& path, const std::string& why) {
  spdlog::warn("the snapshot {} of session {} stays in memory: it could not be written: {}", path, id, why);
  sessions.inMemory.writeEnded(path);
  if (waitingFor(sessions, id, path) != nullptr) return kj::READY_NOW;
  return sessions.inMemory.remove(path);
}

}  // namespace

kj::Promise<void> writeInBackground(Sessions& sessions, std::string id, std::string path, PinnedHold hold) {
  auto writer = kj::heap<WorkerProcess>(sessions.io, sessions.processes, sessions.pool.workerKind());
  auto request = writer->remote().writeRequest();
  request.setDirectory(reader(path));
  request.setRoom(kj::heap<PinnedRoomServer>(std::move(hold)));
  auto written = writer->orExit(request.send().ignoreResult());
  sessions.inMemory.writeBegun(path, kj::mv(writer));
  return written.then([&sessions, id, path] { return isWritten(sessions, id, path); },
                      [&sessions, id, path](kj::Exception&& exception) {
                        return isNotWritten(sessions, id, path, reasonOf(exception));
                      });
}

}  // namespace vgpu::daemon
