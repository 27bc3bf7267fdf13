#include "tools/vgpud/renew.h"

#include <spdlog/spdlog.h>

#include <filesystem>

#include "tools/common/reason.h"
#include "tools/vgpud/resume.h"
#include "tools/vgpud/suspend.h"

namespace vgpu {
namespace {

// Nobody watches.
class NoProgress final : public control::Progress::Server {
 protected:
  kj::Promise<void> report(ReportContext) override { return kj::READY_NOW; }
};

}  // namespace

kj::Promise<void> renewWorker(Sessions& sessions, Session& session) {
  std::string directory = session.directory + "/renewal", id = session.id;
  spdlog::info("session {} ({}, pid {}) needs a new worker", id, session.name, session.pid);
  auto suspended = kj::evalNow([&] { return suspend(sessions, session, directory, kj::heap<NoProgress>()); });
  return suspended
      .then([&sessions, directory](OperationReport&&) { return resume(sessions, directory, kj::heap<NoProgress>()); })
      .then([directory](Resumed&&) {
        std::error_code error;
        std::filesystem::remove_all(directory, error);
      })
      .catch_([&sessions, id](kj::Exception&& exception) {
        std::string why = reasonOf(exception);
        spdlog::warn("session {} gets no new worker: {}", id, why);
        KJ_IF_MAYBE (known, sessions.find(id)) {
          known->link->send([&](control::ToSession::Builder message) { message.setRenewalFailed(why.c_str()); });
        }
      });
}

}  // namespace vgpu
