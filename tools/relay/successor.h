// Starts the relay that takes this one's place if the session of its program moves to another host (program-side.h).
#pragma once

#include <kj/io.h>

#include <span>
#include <string>

namespace vgpu::relay {

// `node`: the address of the other host's vgpud, to which `token` names the session. The new process ends when the returned
// descriptor is closed, unless the session is its own by then; a byte written there says that the program may be met. Throws
// kj::Exception.
kj::AutoCloseFd startSuccessorRelay(const std::string& node, const std::string& stateDirectory, std::span<const uint8_t> token);

}  // namespace vgpu::relay
