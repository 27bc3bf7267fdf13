#include "tools/common/known-nodes.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/common/config-folder.h"
#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

// A text that looks like an address or a path cannot be a name.
bool canBeName(const std::string& text) { return text != anyNode && text.find_first_of(":/") == text.npos; }

}  // namespace

std::string knownNodesFile() {
  const char* named = std::getenv("VGPU_NODES");
  return named != nullptr && *named != 0 ? named : configFolder() + "/nodes";
}

std::vector<KnownNode> knownNodes() {
  const std::string path = knownNodesFile();
  std::vector<KnownNode> nodes;
  if (!std::filesystem::exists(path)) return nodes;
  std::ifstream file(path);
  if (!file) fail(path + " cannot be read: " + std::strerror(errno));
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    auto refuse = [&](const std::string& why) { fail(path + ", line " + std::to_string(number) + ": " + why); };
    std::istringstream words(line.substr(0, line.find('#')));
    KnownNode node;
    std::string more;
    if (!(words >> node.name)) continue;
    if (!(words >> node.address) || words >> more) refuse("expected NAME ADDRESS, found \"" + line + "\"");
    if (!canBeName(node.name))
      refuse("\"" + node.name + "\" cannot be a node's name: it is an address, a path, or the word any");
    if (canBeName(node.address)) refuse("\"" + node.address + "\" is not an address: give one as --node takes it");
    for (const KnownNode& other : nodes)
      if (other.name == node.name) refuse("a node named " + node.name + " is on an earlier line");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::optional<std::string> findKnownNode(const std::string& name) {
  if (!canBeName(name)) return std::nullopt;
  for (KnownNode& node : knownNodes())
    if (node.name == name) return std::move(node.address);
  return std::nullopt;
}

}  // namespace vgpu
