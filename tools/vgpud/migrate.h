// Migrate: a session goes to another node while its program runs (docs/migration.md). Its memory is sent ahead in rounds; then
// its gate is closed, the rest is sent, and the target's daemon takes the session over from the program as it would resume it.
// Until the target's worker has claimed the session, this worker has it as it was, and after any failure the program goes on
// here.
#pragma once

#include <kj/async.h>

#include <string>

#include "tools/vgpud/sessions.h"
#include "tools/vgpud/suspend.h"

namespace vgpu::daemon {

struct MigrateOptions {
  std::string target;  // the node: its run directory, or its address (endpoint.h) where it may be on another host
  double downtimeSeconds = 0.1;
  unsigned timeoutSeconds = suspendTimeout;
  bool withMachine = false;  // the program's virtual machine goes there, with the memory that the session has in it
};

struct Migrated {
  std::string device;      // there
  OperationReport report;  // gateSeconds: the program was held for
};

// Throws kj::Exception, at once or later. Dropping the promise before the program may move ends the work.
kj::Promise<Migrated> migrate(Sessions& sessions, Session& session, MigrateOptions options, control::Progress::Client progress);

// The same in steps that the caller takes, for a program that moves itself meanwhile: with its virtual machine.
kj::Promise<control::Departure::Client> depart(Sessions& sessions, Session& session, MigrateOptions options,
                                               control::Progress::Client progress);

}  // namespace vgpu::daemon
