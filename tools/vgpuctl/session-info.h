// A daemon's description of a session, for people and for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "vgpu/control/control.capnp.h"

namespace vgpu::ctl {

const char* stateName(control::State state);

// Keys: session, name, pid, state, device, program, directory, workerPid, snapshot, openedSeconds, images.
nlohmann::json sessionJson(control::SessionInfo::Reader session);

// Prints on stdout, in ASCII, so that a program's name cannot contain a terminal sequence.
void printJson(const nlohmann::json& value);

}  // namespace vgpu::ctl
