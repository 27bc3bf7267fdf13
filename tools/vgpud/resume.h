// Resume: the daemon connects to the snapshot's waiting program, restores a fresh worker, and the program continues under this
// daemon. Until the worker is complete nothing has changed: after any failure the program stays suspended and can be resumed
// again, here or elsewhere.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/vgpud/commit-barrier.h"
#include "tools/vgpud/sessions.h"
#include "tools/vgpud/sharing-group.h"
#include "tools/vgpud/suspend.h"

namespace vgpu::daemon {

struct Resumed {
  std::string session;  // id
  OperationReport report;
};

// What there is of a session that comes from another node.
struct Arrived {
  kj::Own<WorkerProcess> worker = {};  // has the memory that was sent ahead
  // From another host:
  kj::Own<ProgramLink> program = {};  // the relay that is the program here, which has met nobody
  kj::Maybe<kj::Function<kj::Promise<void>(int)>> fillArena = nullptr;  // writes its pinned memory into its host arena
  // With its virtual machine: it is restored, and waits until the machine is here.
  struct Machine {
    kj::Own<kj::PromiseFulfiller<void>> restored;
    kj::Promise<void> came;
  };
  kj::Maybe<Machine> machine = nullptr;
};

// One of several sessions that are resumed together (resume-together.h).
struct InTree {
  pid_t copy = 0;                       // the program is a parked copy of the snapshot's, and gets a session of its own
  kj::Own<CommitBarrier> barrier = {};  // where it waits before it goes on; nothing: it does not, and is resumed alone
  kj::Own<SharingGroup> group = {};     // with the barrier: what these sessions share with each other
};

// Resumes from the snapshot in `directory`, an absolute path; `devices`: as of Node.resume. Throws kj::Exception, at once or
// later. Dropping the promise ends the work. Without `arrived`: in a worker that has the session, or a fresh one.
kj::Promise<Resumed> resume(Sessions& sessions, std::string directory, control::Progress::Client progress,
                            std::vector<uint32_t> devices = {}, Arrived arrived = {}, InTree tree = {});

}  // namespace vgpu::daemon
