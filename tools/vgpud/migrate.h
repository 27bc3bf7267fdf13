// Migrate: a session goes to another node while its program runs (docs/migration.md). Its memory is sent ahead in rounds; then its gate is
// closed, the rest is sent, and the target's daemon takes the session over from the program as in a resume. Until the target's worker has
// claimed the session, this worker keeps it unchanged, and after any failure the program goes on here.
#pragma once

#include <kj/async.h>

#include <string>

#include "tools/vgpud/sessions.h"
#include "tools/vgpud/suspend.h"

namespace vgpu::daemon {

struct MigrateOptions {
  std::string target;  // the node: its run directory, or its address (endpoint.h) if it may be on another host
  double downtimeSeconds = 0.1;
  unsigned timeoutSeconds = suspendTimeout;
  bool withMachine = false;  // the program's virtual machine moves too, with the session's part of its memory
};

struct Migrated {
  std::string device;      // at the target
  OperationReport report;  // gateSeconds: how long the program was held
};

// Throws kj::Exception, at once or later. Dropping the promise ends the work, as long as the program has not been told to move.
kj::Promise<Migrated> migrate(Sessions& sessions, Session& session, MigrateOptions options, control::Progress::Client progress);

// The same in steps that the caller controls, for a program whose virtual machine moves meanwhile.
kj::Promise<control::Departure::Client> depart(Sessions& sessions, Session& session, MigrateOptions options,
                                               control::Progress::Client progress);

}  // namespace vgpu::daemon
