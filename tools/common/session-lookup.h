// SESSION, as a person writes it: a session's id, its name, or the pid of its program.
#pragma once

#include <span>
#include <string>

namespace vgpu {

struct SessionKey {
  std::string id, name;
  int pid = 0;
};

// The index in `sessions` of the one that `text` means. Throws kj::Exception where it is none, or more than one.
size_t lookUpSession(std::span<const SessionKey> sessions, const std::string& text);

}  // namespace vgpu
