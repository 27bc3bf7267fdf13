// A new worker for a running session: what a program needs whose GPU was ended for the worker's process by a fault. It
// is a suspend and a resume in one, so the program keeps what it has on its other GPUs.
#pragma once

#include <kj/async.h>

#include "tools/vgpud/sessions.h"

namespace vgpu::daemon {

// Never rejects: if it cannot be, the program is told why.
kj::Promise<void> renewWorker(Sessions& sessions, Session& session);

}  // namespace vgpu::daemon
