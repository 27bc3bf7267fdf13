// Snapshot: a suspend whose program goes on. Memory is copied while the program runs; then its gate is closed, what has changed since is
// held in memory, the gate is opened, and the rest is written. After any failure the program runs on, and nothing of the snapshot is left.
#pragma once

#include <kj/async.h>

#include <string>

#include "tools/vgpud/suspend.h"

namespace vgpu::daemon {

// To `directory`, an absolute path. Dropping the promise ends the work. Throws kj::Exception, at once or later.
kj::Promise<OperationReport> snapshotOf(Sessions& sessions, Session& session, std::string directory,
                                        control::Progress::Client progress, unsigned timeoutSeconds);

}  // namespace vgpu::daemon
