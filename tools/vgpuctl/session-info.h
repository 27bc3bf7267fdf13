// A daemon's description of a session, for people and for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "vgpu/control/control.capnp.h"

namespace vgpu::ctl {

const char* stateName(control::State state);

// Keys: session, name, pid, state, device, program, directory, workerPid, snapshot, openedSeconds, images.
nlohmann::json sessionJson(control::SessionInfo::Reader session);

// On stdout, in ASCII, so that a program's name contains no terminal sequence.
void printJson(const nlohmann::json& value);

}  // namespace vgpu::ctl
