// Starts the relay for a program whose session moves to another host. It replaces another relay, or a daemon with which the program shared
// memory (tools/relay/program-side.h).
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <string>
#include <string_view>

namespace vgpu {

// `node`: the address of the other host's vgpud, where `token` identifies the session. The new process ends when the returned descriptor is
// closed, unless it has the session by then; a byte written to the descriptor tells it that the program may be contacted. Throws
// kj::Exception.
struct SuccessorRelay {
  kj::AutoCloseFd connection;
  pid_t starter;  // a child that ends when the relay runs; the caller must reap it
};
SuccessorRelay startSuccessorRelay(const std::string& node, const std::string& stateDirectory, std::string_view token);

}  // namespace vgpu
