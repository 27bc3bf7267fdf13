// SESSION on a command line: id:ID, name:NAME or pid:PID; or a plain word that is the id, name or pid of exactly one session.
#pragma once

#include <span>
#include <string>

namespace vgpu {

struct SessionKey {
  std::string id, name;
  int pid = 0;
};

// The index in `sessions` of the session that `text` names. Throws kj::Exception if there is none, or more than one, in which case the
// message lists the candidates. A text with one of the prefixes is never a plain word.
size_t lookUpSession(std::span<const SessionKey> sessions, const std::string& text);

}  // namespace vgpu
