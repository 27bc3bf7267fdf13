// Writes a snapshot that is in this daemon's memory to its store, beside all else: a suspend with --background. The work is a
// process's of its own (checkpoint/write-out.h): a vgpu-worker that is never greeted, so it has no driver.
#pragma once

#include <kj/async.h>

#include <string>

#include "tools/vgpud/sessions.h"

namespace vgpu::daemon {

// Resolves when the snapshot at `path` is on disk, and its program, if it still waits, has been told. Rejects if it could not be
// written; it is in memory as before then.
kj::Promise<void> writeInBackground(Sessions& sessions, std::string session, std::string path, PinnedHold hold);

}  // namespace vgpu::daemon
