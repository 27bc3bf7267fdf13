#include "tools/worker/live-snapshot-server.h"

#include "tools/worker/pinned-relay.h"
#include "tools/worker/progress-relay.h"
#include "tools/worker/reports.h"

namespace vgpu::stub {

LiveSnapshotServer::~LiveSnapshotServer() noexcept(false) {
  auto ended = thread.run([snapshot = kj::mv(snapshot)]() mutable {
    snapshot.reset();
    return Done{};
  });
  ended.ignoreResult().detach([](kj::Exception&&) {});
}

kj::Promise<void> LiveSnapshotServer::capture(CaptureContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  auto room = PinnedRelay::of(params);
  auto captured = thread.run([snapshot = snapshot.get(), relay, room, pinned = pinned, objects = textOf(params.getObjects()),
                              identity = identityOf(params.getSession(), params.getReattach())] {
    auto pinnedRoom = roomIn(pinned, room, "");
    snapshot->capture(objects, identity, progressTo(relay), pinnedRoom ? &*pinnedRoom : nullptr);
    return Done{};
  });
  return cancelOnDrop(captured.ignoreResult(), relay).attach(kj::defer([room] {
    if (room) room->close();
  }));
}

kj::Promise<void> LiveSnapshotServer::finish(FinishContext context) {
  context.allowCancellation();
  auto relay = std::make_shared<ProgressRelay>(context.getParams().getProgress());
  auto finished = thread.run([snapshot = snapshot.get(), relay] { return snapshot->finish(progressTo(relay)); });
  return cancelOnDrop(
      finished.then([context](checkpoint::Report&& report) mutable { give(report, context.getResults().initReport()); }), relay);
}

}  // namespace vgpu::stub
