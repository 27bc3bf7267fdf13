// Parks the program of a suspended session: it releases everything that it uses of this node, so that its process can be saved, and the
// node forgets the session (vgpu/control/parked-program.h).
#pragma once

#include <kj/async.h>

#include <string>

#include "tools/vgpud/sessions.h"

namespace vgpu::daemon {

// For a session in a virtual machine's memory that has just been suspended to `directory`, and whose machine is saved next: writes its
// pinned memory there, and resolves when the machine knows that the session is suspended.
kj::Promise<void> suspendedWithMachine(Sessions& sessions, const std::string& id, std::string directory);

// Resolves when the program uses nothing of the node any more, and its state directory is removed. Rejects, leaving the session suspended,
// if the program refuses. Throws kj::Exception if the session is not suspended, or its snapshot is in memory. A program in a virtual
// machine's memory is not asked: its machine is on disk.
kj::Promise<void> park(Sessions& sessions, Session& session);

// Makes the program, a parked process of this pid and session, continue in a new state directory of this node, suspended, as session
// `becomes`. Nothing if the process is not parked. Rejects, leaving it parked, if that fails.
kj::Promise<kj::Maybe<StateDirectory::Shared>> unpark(Sessions& sessions, pid_t pid, std::string session, std::string becomes);

}  // namespace vgpu::daemon
