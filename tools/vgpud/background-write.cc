#include "tools/vgpud/background-write.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "tools/common/reason.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"

namespace vgpu::daemon {
namespace {

// How long until a failed write is tried again: the disk may have room then. VGPU_WRITE_RETRY, in seconds, overrides it.
kj::Duration writeRetryDelay() {
  const char* wish = std::getenv("VGPU_WRITE_RETRY");
  return (wish == nullptr ? 30 : std::strtol(wish, nullptr, 10)) * kj::SECONDS;
}

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

kj::Promise<void> runWriter(Sessions& sessions, BackgroundWrite& write) {
  auto writer = kj::heap<WorkerProcess>(sessions.io, sessions.processes, sessions.pool.workerKind());
  auto request = writer->remote().writeRequest();
  request.setDirectory(reader(write.path));
  request.setRoom(kj::heap<PinnedRoomServer>(write.hold));
  auto written = writer->orExit(request.send().ignoreResult());
  sessions.inMemory.writeBegun(write.path, kj::mv(writer));
  return written;
}

void warnOfFailure(const BackgroundWrite& write, const kj::Exception& why, const std::string& next) {
  spdlog::warn("the snapshot {} of session {} stays in memory: it could not be written: {}{}", write.path, write.session, reasonOf(why),
               next);
}

kj::Promise<void> tryToWrite(Sessions& sessions, BackgroundWrite& write);

// Retries after a delay. Resolves when the snapshot is written; rejects with `why` if it is not needed any more.
kj::Promise<void> tryAgain(Sessions& sessions, BackgroundWrite& write, kj::Exception&& why) {
  auto isWanted = [&sessions, &write] { return sessions.isAdmitting() && waitingFor(sessions, write.session, write.path) != nullptr; };
  if (!write.isAlone || !isWanted()) return kj::mv(why);
  const auto delay = writeRetryDelay();
  warnOfFailure(write, why, fmt::format(". It is tried again in {} s", delay / kj::SECONDS));
  sessions.inMemory.writeEnded(write.path);
  // Drops the hold meanwhile: if the program is resumed, the snapshot is removed, and its memory is freed at once.
  std::weak_ptr<PinnedChunks::Hold> held = std::exchange(write.hold, nullptr);
  return sessions.io.provider->getTimer().afterDelay(delay).then([&sessions, &write, isWanted, held, why = kj::mv(why)]() mutable {
    write.hold = held.lock();
    const bool isKept = sessions.inMemory.keeps(write.path, write.hold) && isWanted();
    return isKept ? tryToWrite(sessions, write) : kj::Promise<void>(kj::mv(why));
  });
}

kj::Promise<void> tryToWrite(Sessions& sessions, BackgroundWrite& write) {
  return runWriter(sessions, write).catch_([&](kj::Exception&& why) { return tryAgain(sessions, write, kj::mv(why)); });
}

kj::Promise<void> isNotWritten(Sessions& sessions, const BackgroundWrite& write, kj::Exception&& why) {
  if (!sessions.inMemory.keeps(write.path, write.hold)) return kj::mv(why);  // the program was resumed after the write failed
  warnOfFailure(write, why, "");
  sessions.inMemory.writeEnded(write.path);
  kj::Promise<void> removed = kj::READY_NOW;
  if (waitingFor(sessions, write.session, write.path) == nullptr) removed = sessions.inMemory.remove(write.path);
  return removed.then([why = kj::mv(why)]() mutable -> kj::Promise<void> { return kj::mv(why); });
}

}  // namespace

kj::Promise<void> writeInBackground(Sessions& sessions, BackgroundWrite write) {
  auto own = kj::heap<BackgroundWrite>(kj::mv(write));
  auto& one = *own;
  return one.before.then([&] { return tryToWrite(sessions, one); })
      .then([&] { return isWritten(sessions, one); },
            [&](kj::Exception&& exception) { return isNotWritten(sessions, one, kj::mv(exception)); })
      .attach(kj::mv(own));
}

}  // namespace vgpu::daemon
