#include "tools/vgpud/target-node.h"

#include "tools/common/arrival.h"
#include "tools/common/descriptor.h"
#include "tools/common/node-address.h"
#include "tools/common/reason.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

Reached reachElsewhere(const Endpoint& endpoint, NodeRelay::For what) {
  Reached reached{std::make_unique<NodeRelay>(endpoint, what), {}};
  reached.socket = reached.relay->take();
  return reached;
}

}  // namespace

Reached connectStream(const std::optional<Endpoint>& elsewhere, const std::string& path, const std::string& token) {
  Reached reached = elsewhere ? reachElsewhere(*elsewhere, NodeRelay::For::stream) : Reached{nullptr, connectUnix(path)};
  announce(reached.socket, Bringing::memory, token);
  return reached;
}

Reached connectNode(const std::optional<Endpoint>& elsewhere, const std::string& target) {
  if (elsewhere) return reachElsewhere(*elsewhere, NodeRelay::For::calls);
  Reached reached;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { reached.socket = connectUnix(NodeAddress{target}.controlSocket()); }))
    fail("no vgpud answers in " + target + ": " + reasonOf(*exception));
  return reached;
}

}  // namespace vgpu::daemon
