// Writes a snapshot from this daemon's memory to its store in the background: a suspend with --background. A separate process does the work
// (checkpoint/write-out.h): a vgpu-worker without hello(), so it has no driver. Of sessions that share, the snapshot whose folder contains
// those of the others is written last, and only if the others could be written: so if it is on disk, it is complete.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

#include "tools/vgpud/sessions.h"
#include "tools/vgpud/suspend-together.h"

namespace vgpu::daemon {

struct BackgroundWrite {
  std::string session, path;  // the session of the snapshot, and the snapshot's directory
  PinnedHold hold;
  bool isAlone = true;  // the session was not suspended together with others (suspend-together.h)
  kj::Promise<void> before = kj::READY_NOW;  // awaited first; if it rejects, this snapshot is not written
  // The sessions, and the folders of their snapshots, that no longer depend on any daemon afterwards.
  std::vector<SessionFolder> whole;
};

// Writes a snapshot that is held in memory (memory-snapshots.h). Resolves when it is on disk and those programs of `whole` that still wait
// have been notified. A failed write is logged; if the snapshot `isAlone`, the write is tried again while its program waits. Rejects if the
// snapshot was not written.
kj::Promise<void> writeInBackground(Sessions& sessions, BackgroundWrite write);

}  // namespace vgpu::daemon
