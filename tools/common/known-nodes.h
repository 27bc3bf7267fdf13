// The nodes that a user has written down, so that names can be used wherever an address is: in ~/.config/vgpu/nodes (VGPU_NODES
// names another file), a node a line,
//
//   NAME ADDRESS       # the address as --node takes it
//
// Empty lines, and what follows a '#', do not count.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vgpu {

struct KnownNode {
  std::string name, address;
};

// What `--node any` stands for: no node can have this name.
inline constexpr const char* anyNode = "any";

std::string knownNodesFile();
// None if there is no such file. Throws kj::Exception, naming the line, if one of it is wrong.
std::vector<KnownNode> knownNodes();
// The address of a name; nothing if it is not known.
std::optional<std::string> findKnownNode(const std::string& name);

}  // namespace vgpu
