// Interface LiveSnapshot: a snapshot of a session that goes on, whose steps the caller controls.
//
// Made in the event loop; the snapshot itself is made, used and destroyed on the work thread.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "checkpoint/live-snapshot.h"
#include "tools/worker/work-thread.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

class LiveSnapshotServer final : public control::LiveSnapshot::Server {
 public:
  // `pinned`: this process's mapping of the daemon's pinned memory.
  LiveSnapshotServer(WorkThread& thread, std::shared_ptr<checkpoint::LiveSnapshot> snapshot, std::span<std::byte> pinned)
      : thread(thread), snapshot(std::move(snapshot)), pinned(pinned) {}
  ~LiveSnapshotServer() noexcept(false);

 protected:
  kj::Promise<void> capture(CaptureContext context) override;
  kj::Promise<void> finish(FinishContext context) override;

 private:
  WorkThread& thread;
  std::shared_ptr<checkpoint::LiveSnapshot> snapshot;
  const std::span<std::byte> pinned;
};

}  // namespace vgpu::stub
