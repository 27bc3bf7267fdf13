#include "tools/common/session-lookup.h"

#include <vector>

#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

std::string listed(std::span<const SessionKey> sessions, const std::vector<size_t>& which) {
  std::string text;
  for (size_t index : which) {
    const SessionKey& key = sessions[index];
    text += (text.empty() ? "" : ", ") + key.id + " (" + key.name + ", pid " + std::to_string(key.pid) + ")";
  }
  return text;
}

}  // namespace

size_t lookUpSession(std::span<const SessionKey> sessions, const std::string& text) {
  std::vector<size_t> found;
  for (size_t i = 0; i < sessions.size(); ++i) {
    const SessionKey& key = sessions[i];
    if (key.id == text) return i;
    if (key.name == text || std::to_string(key.pid) == text) found.push_back(i);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    fail("there is no session \"" + text + "\" on this node: give an id, a name or a pid that `vgpuctl ps` shows");
  }
  fail("\"" + text + "\" means more than one session: " + listed(sessions, found) + ". Give the id of one");
}

}  // namespace vgpu
