#include "tools/common/session-lookup.h"

#include <vector>

#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

struct Word {
  bool id = true, name = true, pid = true;  // how the text may be interpreted
  std::string text;
};

Word parse(const std::string& text) {
  if (text.starts_with("id:")) return {true, false, false, text.substr(3)};
  if (text.starts_with("name:")) return {false, true, false, text.substr(5)};
  if (text.starts_with("pid:")) return {false, false, true, text.substr(4)};
  return {.text = text};
}

bool means(const Word& word, const SessionKey& key) {
  return (word.id && key.id == word.text) || (word.name && key.name == word.text) ||
         (word.pid && std::to_string(key.pid) == word.text);
}

std::string listed(std::span<const SessionKey> sessions, const std::vector<size_t>& which) {
  std::string text;
  for (size_t index : which) {
    const SessionKey& key = sessions[index];
    text += (text.empty() ? "id:" : ", id:") + key.id + " (" + key.name + ", pid " + std::to_string(key.pid) + ")";
  }
  return text;
}

}  // namespace

size_t lookUpSession(std::span<const SessionKey> sessions, const std::string& text) {
  Word word = parse(text);
  std::vector<size_t> found;
  for (size_t i = 0; i < sessions.size(); ++i)
    if (means(word, sessions[i])) found.push_back(i);
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    fail("there is no session \"" + text +
         "\" on this node: give an id, a name or a pid that `vgpuctl ps` shows, or id:, name: or pid: with one");
  }
  fail("\"" + text + "\" matches several sessions: " + listed(sessions, found) + ". Name one of them in this form");
}

}  // namespace vgpu
