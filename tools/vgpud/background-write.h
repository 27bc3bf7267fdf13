// Writes a snapshot that is in this daemon's memory to its store, beside all else: a suspend with --background. The work is a
// process's of its own (checkpoint/write-out.h): a vgpu-worker that is never greeted, so it has no driver. Of sessions that share,
// the snapshot in whose folder the others are is written last, and only if these could be: so one that is on disk is whole.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

#include "tools/vgpud/sessions.h"
#include "tools/vgpud/suspend-together.h"

namespace vgpu::daemon {

struct BackgroundWrite {
  std::string session, path;  // whose snapshot, and where
  PinnedHold hold;
  bool isAlone = true;  // not one of several sessions that share
  kj::Promise<void> before = kj::READY_NOW;  // first: rejects if this one is not to be written
  // Those sessions, and the folders of their snapshots, that then depend on no daemon any more.
  std::vector<SessionFolder> whole;
};

// Of a snapshot that was kept to be written (memory-snapshots.h). Resolves when it is on disk, and the programs of `whole` that still
// wait have been told. A failed write is logged, and tried again while the program of one that `isAlone` waits. Rejects if the snapshot
// was not written.
kj::Promise<void> writeInBackground(Sessions& sessions, BackgroundWrite write);

}  // namespace vgpu::daemon
