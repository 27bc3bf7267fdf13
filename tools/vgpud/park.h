// Parks the program of a suspended session: it lets go of all that it has of this node, so that its process can be saved, and the
// node forgets it (vgpu/control/parked-program.h).
#pragma once

#include <kj/async.h>

#include <string>

#include "tools/vgpud/sessions.h"

namespace vgpu::daemon {

// A session in a virtual machine's memory that has just been suspended to `directory`, and whose machine is saved next: writes
// its pinned memory there, and resolves when the machine knows that it is suspended.
kj::Promise<void> suspendedWithMachine(Sessions& sessions, const std::string& id, std::string directory);

// Resolves when the program has nothing of the node any more, and its state directory is removed. Rejects, and the session is
// suspended as before, if the program refuses. Throws kj::Exception if the session is not suspended, or its snapshot is in
// memory. Of one in a virtual machine's memory the program is not asked: its machine is on disk.
kj::Promise<void> park(Sessions& sessions, Session& session);

// Has the program, a parked process of this pid and session, go on in a new state directory of this node, suspended, as session
// `becomes`. Nothing if it is not parked. Rejects, and it stays parked, if it cannot.
kj::Promise<kj::Maybe<StateDirectory::Shared>> unpark(Sessions& sessions, pid_t pid, std::string session, std::string becomes);

}  // namespace vgpu::daemon
