#include "tools/vgpud/renew.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "tools/common/reason.h"
#include "tools/vgpud/log.h"
#include "tools/vgpud/resume.h"
#include "tools/vgpud/suspend.h"

namespace vgpu::daemon {
namespace {

// How often it checks whether another operation has ended, which may be a snapshot that takes minutes to write.
constexpr auto lookInterval = 50 * kj::MILLISECONDS;

// Discards progress reports.
class NoProgress final : public control::Progress::Server {
 protected:
  kj::Promise<void> report(ReportContext) override { return kj::READY_NOW; }
};

// Resolves to true when the session can be suspended, or is lost, which the suspend then reports; to false if it needs no new worker any
// more, because another operation's resume brings one, or it has left.
kj::Promise<bool> isFree(Sessions& sessions, std::string id) {
  KJ_IF_MAYBE (session, sessions.find(id)) {
    if (session->state == control::State::LOST) return true;
    if (session->state == control::State::SUSPENDED || !session->isRenewing) return false;
    if (session->state == control::State::RUNNING && session->isIdle()) return true;
    auto later = sessions.io.provider->getTimer().afterDelay(lookInterval);
    return later.then([&sessions, id = std::move(id)]() mutable { return isFree(sessions, std::move(id)); });
  }
  return false;
}

// The snapshot goes to a folder of the daemon's own, because the program can change its session's directory. The folder is removed when the
// session runs again, or its program has left.
kj::Promise<void> renewBy(Sessions& sessions, const std::string& id, StateDirectory::Shared folder) {
  KJ_ON_SCOPE_FAILURE(sessions.remove(folder));
  Session& session = sessions.get("id:" + id);
  session.renewal = folder;
  std::string snapshot = folder->path() + "/snapshot";
  auto devices = session.devices;
  return suspend(sessions, session, snapshot, kj::heap<NoProgress>())
      .then([&sessions, snapshot,
             devices](OperationReport&&) { return resume(sessions, snapshot, kj::heap<NoProgress>(), devices); },
            [&sessions, folder](kj::Exception&& exception) -> kj::Promise<Resumed> {
              sessions.remove(folder);
              return kj::mv(exception);
            })
      .ignoreResult();
}

}  // namespace

kj::Promise<void> renewWorker(Sessions& sessions, Session& session) {
  std::string id = session.id;
  pid_t pid = session.pid;
  warnLimited("renewal wanted", pid,
              fmt::format("session {} ({}, pid {}) needs a new worker", id, session.name, pid));
  auto made = sessions.files.run([folder = sessions.directory.renewals(), name = id + "-" + newSessionId(), pid] {
    return StateDirectory::make(folder, name, pid);
  });
  return made
      .then([&sessions, id](StateDirectory::Shared&& folder) {
        return isFree(sessions, id).then([&sessions, id, folder = kj::mv(folder)](bool isFree) -> kj::Promise<void> {
          if (isFree) return renewBy(sessions, id, folder);
          sessions.remove(folder);
          return kj::READY_NOW;
        });
      })
      .catch_([&sessions, id, pid](kj::Exception&& exception) {
        std::string why = reasonOf(exception);
        warnLimited("renewal failed", pid, fmt::format("session {} gets no new worker: {}", id, why));
        KJ_IF_MAYBE (known, sessions.find(id)) {
          known->isRenewing = false;
          known->link->send([&](control::ToSession::Builder message) { message.setRenewalFailed(why.c_str()); });
        }
      });
}

}  // namespace vgpu::daemon
