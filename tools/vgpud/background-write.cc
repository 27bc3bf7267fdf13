#include "tools/vgpud/background-write.h"

#include <spdlog/spdlog.h>

#include "tools/common/reason.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"

namespace vgpu::daemon {
namespace {

// The session that is suspended to `path`, or being resumed from it, if there is one.
kj::Maybe<Session&> waitingFor(Sessions& sessions, const std::string& id, const std::string& path) {
  KJ_IF_MAYBE (session, sessions.find(id)) {
    if (session->isSuspendedTo(path)) return *session;
  }
  return nullptr;
}

kj::Promise<void> isWritten(Sessions& sessions, const BackgroundWrite& write) {
  faultPoint("write.done");
  spdlog::info("the snapshot {} of session {} is on disk", write.path, write.session);
  for (auto& one : write.whole)
    KJ_IF_MAYBE (session, waitingFor(sessions, one.session, one.directory)) {
      session->link->send([&](control::ToSession::Builder message) { message.setSuspended(reader(one.directory)); });
    }
  return sessions.inMemory.release(write.path);
}

kj::Promise<void> isNotWritten(Sessions& sessions, const BackgroundWrite& write, kj::Exception&& why) {
  auto &id = write.session, &path = write.path;
  spdlog::warn("the snapshot {} of session {} stays in memory: it could not be written: {}", path, id, reasonOf(why));
  sessions.inMemory.writeEnded(path);
  kj::Promise<void> removed = kj::READY_NOW;
  if (waitingFor(sessions, id, path) == nullptr) removed = sessions.inMemory.remove(path);
  return removed.then([why = kj::mv(why)]() mutable -> kj::Promise<void> { return kj::mv(why); });
}

kj::Promise<void> runWriter(Sessions& sessions, BackgroundWrite& write) {
  auto writer = kj::heap<WorkerProcess>(sessions.io, sessions.processes, sessions.pool.workerKind());
  auto request = writer->remote().writeRequest();
  request.setDirectory(reader(write.path));
  request.setRoom(kj::heap<PinnedRoomServer>(std::move(write.hold)));
  auto written = writer->orExit(request.send().ignoreResult());
  sessions.inMemory.writeBegun(write.path, kj::mv(writer));
  return written;
}

}  // namespace

kj::Promise<void> writeInBackground(Sessions& sessions, BackgroundWrite write) {
  auto own = kj::heap<BackgroundWrite>(kj::mv(write));
  auto& one = *own;
  return one.before.then([&] { return runWriter(sessions, one); })
      .then([&] { return isWritten(sessions, one); },
            [&](kj::Exception&& exception) { return isNotWritten(sessions, one, kj::mv(exception)); })
      .attach(kj::mv(own));
}

}  // namespace vgpu::daemon
