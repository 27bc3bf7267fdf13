// Starts the relay that is beside a program after its session has moved to another host, in the place of another one, or of a
// daemon with which the program shared memory (tools/relay/program-side.h).
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <string>
#include <string_view>

namespace vgpu {

// `node`: the address of the other host's vgpud, to which `token` names the session. The new process ends when the returned
// descriptor is closed, unless the session is its own by then; a byte written there says that the program may be met. Throws
// kj::Exception.
struct SuccessorRelay {
  kj::AutoCloseFd connection;
  pid_t starter;  // a child, which ends when the relay runs, and is the caller's to reap
};
SuccessorRelay startSuccessorRelay(const std::string& node, const std::string& stateDirectory, std::string_view token);

}  // namespace vgpu
