// Gives a running session a new worker when its worker's process can no longer use a GPU after a fault. Works as a suspend and a resume in
// one, so the program keeps its state on its other GPUs.
#pragma once

#include <kj/async.h>

#include "tools/vgpud/sessions.h"

namespace vgpu::daemon {

// Never rejects: if it fails, the reason is sent to the program.
kj::Promise<void> renewWorker(Sessions& sessions, Session& session);

}  // namespace vgpu::daemon
