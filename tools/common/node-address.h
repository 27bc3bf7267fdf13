// The address of the daemon to use: `--node`, else the environment variable VGPU_NODE, else the user's own run directory.
#pragma once

#include <optional>
#include <string>

#include "vgpu/control/endpoint.h"

namespace vgpu {

struct NodeAddress {
  std::string directory;  // absolute; holds vgpud.sock and session.sock
  bool named = false;     // it was given explicitly; otherwise it is the default
  std::optional<Endpoint> remote;  // instead of a directory: the node is reached by a connection from elsewhere

  std::string controlSocket() const { return directory + "/vgpud.sock"; }
  std::string sessionSocket() const { return directory + "/session.sock"; }
  // The name used in messages.
  std::string name() const { return remote ? remote->text() : controlSocket(); }
};

// `option` is the argument of --node, or empty. Accepts unix:DIR/vgpud.sock, for convenience DIR/vgpud.sock and DIR, the addresses of
// endpoint.h, and names of known nodes (known-nodes.h). Throws kj::Exception for anything else.
NodeAddress resolveNode(const std::string& option);
// The text that resolveNode() uses: `option`, else VGPU_NODE, else empty.
std::string wantedNode(const std::string& option);

// $XDG_RUNTIME_DIR/vgpu, /run/user/UID/vgpu if that exists, else /tmp/vgpu-UID.
std::string defaultRunDirectory();

}  // namespace vgpu
