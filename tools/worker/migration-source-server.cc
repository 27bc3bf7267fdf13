#include "tools/worker/migration-source-server.h"

#include "tools/worker/progress-relay.h"
#include "tools/worker/reports.h"

namespace vgpu::stub {

MigrationSourceServer::~MigrationSourceServer() noexcept(false) {
  source->cancel();
  auto ended = thread.run([source = kj::mv(source)]() mutable {
    source.reset();
    return Done{};
  });
  ended.ignoreResult().detach([](kj::Exception&&) {});
}

kj::Promise<void> MigrationSourceServer::capture(CaptureContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  auto captured = thread.run([source = source.get(), relay, identity = identityOf(params.getSession(), params.getReattach())] {
    return source->capture(identity, progressTo(relay));
  });
  return cancelOnDrop(
      captured.then([context](checkpoint::Report&& report) mutable { give(report, context.getResults().initReport()); }), relay);
}

kj::Promise<void> MigrationSourceServer::advance(AdvanceContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  auto advanced = thread.run([source = source.get(), relay, downtime = params.getDowntimeSeconds()] {
    source->runRounds(downtime, progressTo(relay));
    return Done{};
  });
  return cancelOnDrop(advanced.ignoreResult(), relay);
}

}  // namespace vgpu::stub
