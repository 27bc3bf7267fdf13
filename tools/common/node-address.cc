#include "tools/common/node-address.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tools/common/known-nodes.h"
#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

std::string fromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string wantedNode(const std::string& option) { return option.empty() ? fromEnvironment("VGPU_NODE") : option; }

NodeAddress resolveNode(const std::string& option) {
  std::string text = wantedNode(option);
  if (text.empty()) return {defaultRunDirectory(), false, {}};
  if (text == anyNode) fail("--node any is for `vgpuctl run` only: name one node (`vgpuctl nodes` lists them)");
  if (auto known = findKnownNode(text)) text = *known;
  if (auto remote = parseEndpoint(text)) return {"", true, remote};
  std::string path = text.starts_with("unix:") ? text.substr(5) : text;
  bool otherScheme = path.find(':') != std::string::npos && path.find('/') > path.find(':');
  if (path.empty() || otherScheme) {
    fail("\"" + text +
         "\" does not name a node: give unix:DIR/vgpud.sock (DIR: the --run-dir of a vgpud), an address on which one listens: " +
         endpointForms + ", or in a virtual machine ivshmem:, the memory that it shares with its host");
  }
  std::filesystem::path absolute = std::filesystem::absolute(path).lexically_normal();
  if (absolute.filename() == "vgpud.sock") absolute = absolute.parent_path();
  if (absolute.filename().empty()) absolute = absolute.parent_path();
  return {absolute.string(), true, {}};
}

std::string defaultRunDirectory() {
  std::string runtime = fromEnvironment("XDG_RUNTIME_DIR");
  if (!runtime.empty()) return runtime + "/vgpu";
  std::string user = "/run/user/" + std::to_string(getuid());
  std::error_code error;
  if (std::filesystem::is_directory(user, error)) return user + "/vgpu";
  return "/tmp/vgpu-" + std::to_string(getuid());
}

}  // namespace vgpu
