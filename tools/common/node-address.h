// The address of the daemon to use: `--node`, else the environment variable VGPU_NODE, else the user's own run directory.
#pragma once

#include <string>

namespace vgpu {

struct NodeAddress {
  std::string directory;  // absolute; holds vgpud.sock and session.sock
  bool named = false;     // it was given; else it is the default

  std::string controlSocket() const { return directory + "/vgpud.sock"; }
  std::string sessionSocket() const { return directory + "/session.sock"; }
};

// `option` is what --node gave, or empty. Takes unix:DIR/vgpud.sock, and for convenience DIR/vgpud.sock and DIR.
// Throws kj::Exception if it is none of these.
NodeAddress resolveNode(const std::string& option);

// $XDG_RUNTIME_DIR/vgpu, /run/user/UID/vgpu if that exists, else /tmp/vgpu-UID.
std::string defaultRunDirectory();

}  // namespace vgpu
