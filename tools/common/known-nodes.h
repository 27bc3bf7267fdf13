// The nodes that a user has listed, whose names can be used wherever an address can: in ~/.config/vgpu/nodes (VGPU_NODES names another
// file), one line per node:
//
//   NAME ADDRESS       # the address in the syntax of --node
//
// Empty lines, and text after a '#', are ignored.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vgpu {

struct KnownNode {
  std::string name, address;
};

// The argument of `--node any`: no node can have this name.
inline constexpr const char* anyNode = "any";

std::string knownNodesFile();
// Empty if there is no such file. Throws kj::Exception, naming the line, if a line is invalid.
std::vector<KnownNode> knownNodes();
// The address of a name; nothing if the name is not listed.
std::optional<std::string> findKnownNode(const std::string& name);

}  // namespace vgpu
