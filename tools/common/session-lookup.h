// SESSION, as a person writes it: id:ID, name:NAME or pid:PID; or a plain word that is one of these for one session only.
#pragma once

#include <span>
#include <string>

namespace vgpu {

struct SessionKey {
  std::string id, name;
  int pid = 0;
};

// The index in `sessions` of the one that `text` means. Throws kj::Exception if it means none, or more than one; the
// candidates are listed then. What begins with a prefix is never a plain word.
size_t lookUpSession(std::span<const SessionKey> sessions, const std::string& text);

}  // namespace vgpu
