// Suspends sessions that share with each other (docs/ipc.md), or belong to one process tree (docs/processes.md): all of them stop at one
// barrier, each is written to a snapshot of its own, and then all are suspended; or none is. After any failure, all go on.
//
// Event loop only.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

#include "tools/vgpud/suspend.h"

namespace vgpu::daemon {

struct SessionFolder {
  std::string session;    // id
  std::string directory;  // of its snapshot, an absolute path
};

struct SuspendedMember {
  std::string session;
  OperationReport report;
};

// Returns `first` and the sessions that were suspended with it, in that order. Without `tree`: those that share with `first`, suspended to
// sessions/ID below its directory. With `tree`: exactly these sessions, beginning with `first`; throws kj::Exception if another session
// shares with one of them. Otherwise like suspend().
kj::Promise<kj::Array<SuspendedMember>> suspendTogether(Sessions& sessions, SessionFolder first, std::vector<SessionFolder> tree,
                                                        control::Progress::Client progress, unsigned timeoutSeconds,
                                                        control::Memory memory);

}  // namespace vgpu::daemon
