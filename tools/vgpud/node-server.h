// Interface Node, as one connection of vgpuctl or of another daemon sees it.
#pragma once

#include <string>

#include "tools/vgpud/sessions.h"
#include "vgpu/wire/control.capnp.h"

namespace vgpu {

class NodeServer final : public control::Node::Server {
 public:
  NodeServer(Sessions& sessions, const RunDirectory& directory) : sessions(sessions), directory(directory) {}

 protected:
  kj::Promise<void> hello(HelloContext context) override;
  kj::Promise<void> list(ListContext context) override;
  kj::Promise<void> suspend(SuspendContext context) override;
  kj::Promise<void> resume(ResumeContext context) override;
  kj::Promise<void> workers(WorkersContext context) override;

 private:
  Sessions& sessions;
  const RunDirectory& directory;
};

// Serves a connection until its peer closes it. A peer that says nothing for 10 s is not kept.
kj::Promise<void> serveNode(Sessions& sessions, const RunDirectory& directory, kj::AutoCloseFd socket);

}  // namespace vgpu
