// Interface Node for one connection, of vgpuctl or another daemon.
#pragma once

#include <memory>
#include <string>

#include "tools/vgpud/sessions.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class NodeServer final : public control::Node::Server {
 public:
  // `calls` counts the calls on its connection.
  NodeServer(Sessions& sessions, std::shared_ptr<unsigned> calls) : sessions(sessions), calls(std::move(calls)) {}

 protected:
  kj::Promise<void> hello(HelloContext context) override;
  kj::Promise<void> list(ListContext context) override;
  kj::Promise<void> suspend(SuspendContext context) override;
  kj::Promise<void> resume(ResumeContext context) override;
  kj::Promise<void> workers(WorkersContext context) override;
  kj::Promise<void> snapshot(SnapshotContext context) override;
  kj::Promise<void> explain(ExplainContext context) override;
  kj::Promise<void> migrate(MigrateContext context) override;
  kj::Promise<void> depart(DepartContext context) override;
  kj::Promise<void> pauseGuest(PauseGuestContext context) override;
  kj::Promise<void> receive(ReceiveContext context) override;
  kj::Promise<void> park(ParkContext context) override;

 private:
  Sessions& sessions;
  std::shared_ptr<unsigned> calls;
};

// Serves a connection until its peer closes it. The connection is closed if the peer sends nothing for its first 10 s, does not read its
// replies, or makes too many calls (a reply stays in memory until the caller releases it).
kj::Promise<void> serveNode(Sessions& sessions, kj::AutoCloseFd socket);

}  // namespace vgpu::daemon
