// Suspend: the program's gate is closed, its worker stops, the snapshot is written, the worker ends. After any failure before the snapshot
// is complete, the program runs on as before.
#pragma once

#include <kj/async.h>

#include <string>

#include "tools/vgpud/sessions.h"
#include "vgpu/base/phase-times.h"

namespace vgpu::daemon {

struct OperationReport {
  double seconds = 0, gateSeconds = 0;
  uint64_t deviceBytes = 0, storedBytes = 0, objects = 0, pendingCalls = 0, memoryBytes = 0, copiedBytes = 0;
  unsigned rounds = 0;                     // for a snapshot whose program goes on
  uint64_t roundBytes = 0, heldBytes = 0;  // likewise
  uint64_t twinBytes = 0;                  // for a resume: copied from another session's GPU memory (twins.h)
  uint64_t aheadObjects = 0;               // for a migration: made by the target before the program was held
  PhaseClock clock;                        // the daemon's phases
  PhaseTimes phases;                       // all phases

  // Adds a worker's report; `phase`: the daemon's phase during which the worker did this.
  void take(control::Report::Reader report, const char* phase);
  // Adds only the phases of another daemon's report, with `where` before their names.
  void takePhases(control::Report::Reader report, const char* phase, const std::string& where = "");
  void end(const char* phase);
  void give(control::Report::Builder report) const;
};

// How long a suspend waits for the program's gate, and then again for its GPU, unless the caller sets another limit.
constexpr unsigned suspendTimeout = 60;

// Suspends `session` to `directory`, an absolute path; with `memory`, chunks go to the daemon's pinned memory, as far as there is room, and
// for ONLY the directory must be in a store. Dropping the promise before the snapshot is complete ends the work and lets the program go on.
// Throws kj::Exception, at once or later.
kj::Promise<OperationReport> suspend(Sessions& sessions, Session& session, std::string directory,
                                     control::Progress::Client progress, unsigned timeoutSeconds = suspendTimeout,
                                     control::Memory memory = control::Memory::NONE);

}  // namespace vgpu::daemon
