// Resume: the daemon connects to the snapshot's waiting program, restores a fresh worker, and the program continues under this daemon.
// Nothing is changed until the worker is complete: after any failure the program stays suspended and can be resumed again, here or
// elsewhere.
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

// What a session that comes from another node brings.
struct Arrived {
  kj::Own<WorkerProcess> worker = {};  // has received the memory that was sent ahead
  // From another host:
  kj::Own<ProgramLink> program = {};  // the relay that acts as the program here; no message was exchanged yet
  kj::Maybe<kj::Function<kj::Promise<void>(int)>> fillArena = nullptr;  // writes the received pinned memory into the session's host arena
  // The session comes with its virtual machine: it is restored, and waits until the machine is here.
  struct Machine {
    kj::Own<kj::PromiseFulfiller<void>> restored;
    kj::Promise<void> came;
  };
  kj::Maybe<Machine> machine = nullptr;
};

// For one of several sessions that are resumed together (resume-together.h).
struct InTree {
  pid_t copy = 0;                       // a parked process that is a copy of the snapshot's program, and gets a new session; 0: none
  kj::Own<CommitBarrier> barrier = {};  // where it waits before it goes on; null: it is resumed alone
  kj::Own<SharingGroup> group = {};     // set with the barrier: what these sessions share with each other
};

// Resumes from the snapshot in `directory`, an absolute path; `devices`: as in Node.resume. Throws kj::Exception, at once or later.
// Dropping the promise ends the work. Without `arrived`, uses the worker that still has the session, or a fresh one.
kj::Promise<Resumed> resume(Sessions& sessions, std::string directory, control::Progress::Client progress,
                            std::vector<uint32_t> devices = {}, Arrived arrived = {}, InTree tree = {});

}  // namespace vgpu::daemon
