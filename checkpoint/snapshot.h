// Saves a session to a snapshot directory and restores it (docs/snapshot.md describes the format).
//
// Both run in the worker process, on a quiesced worker, because the object list and the snapshot come from an untrusted program: they can
// harm only this session's worker.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vgpu/base/phase-times.h"
#include "checkpoint/pinned-memory.h"
#include "vgpu/snapshot/pending-calls.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/snapshot/snapshot-writer.h"
#include "stub/worker/worker.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

using namespace snapshot;

struct SentAhead;   // sent-ahead.h
struct TwinMemory;  // twin-memory.h

struct Report {
  uint64_t deviceBytes = 0, storedBytes = 0, objects = 0, pendingCalls = 0;
  uint64_t copiedBytes = 0;                // of chunks that had to be copied: not all zeros, and not known by their digests
  PhaseTimes phases;                       // the parts of the time, in order
  unsigned rounds = 0;                     // for a snapshot of a program that goes on (live-snapshot.h)
  uint64_t roundBytes = 0, heldBytes = 0;  // likewise: bytes copied while it ran, and while it was held
  uint64_t twinBytes = 0;                  // for a restore: copied from another session's GPU memory (twin-memory.h)
  uint64_t aheadObjects = 0;               // for a migration: objects made at the target before the program was held
};

// Called on the working thread, at most every 100 ms or so. `phase` is one word, for people.
using Progress = std::function<void(const char* phase, uint64_t doneBytes, uint64_t totalBytes)>;

// Writes a snapshot of `worker`, quiesced, with `writer`. `objects` is the directory of the object list, committed after the gate was
// closed. The manifest is published last and atomically. Throws kj::Exception; there is no snapshot then, and the target removes what was
// written. With `room`, chunks go to that pinned memory as far as they fit, and the snapshot depends on it.
Report save(stub::Worker& worker, SnapshotWriter& writer, const std::string& objects, const Identity& identity,
            const Progress& progress, const PinnedRoom* room = nullptr);
// The same into `directory` (created if it does not exist; must be empty). If it fails, nothing is left of it.
Report save(stub::Worker& worker, const std::string& directory, const std::string& objects, const Identity& identity,
            const Progress& progress);

// The objects of a snapshot, ordered by their first frames' positions, all of them live; with the checks of a restore.
void readObjects(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit);

// A session rebuilt in a worker, and the state that the program's memory must have before the worker may consume.
struct Restored {
  Report report;
  PendingCalls pending;
};

// Sources of a restore other than files.
struct RestoreFrom {
  const PinnedRoom* room = nullptr;          // chunks that it has are taken from there, even if the snapshot also has them in files
  SentAhead* ahead = nullptr;                // what a migration has sent ahead to this worker
  const std::vector<TwinMemory>* twin = nullptr;  // GPU memory of a session of the same snapshot
  bool memoryLater =
      false;  // the segment does not have the program's content yet; requireMemory() is called when it has
};

// Rebuilds the session in a fresh worker, to which the program's memory has been attached and which does not consume yet. Changes nothing
// in that memory, so ending the worker undoes everything. Throws kj::Exception that names the file and the check, or the symbol whose
// address differs; the worker is of no further use then.
Restored restore(stub::Worker& worker, const std::string& directory, const Progress& progress, const RestoreFrom& from = {});
// Throws kj::Exception if the program's memory is not at the snapshot's positions.
void requireMemory(stub::Worker& worker, const Restored& restored);

// For a worker that was saved to `directory` and has done nothing since: returns what restore() would, with nothing rebuilt. Throws
// kj::Exception if the program's memory, which is still attached, is not at the snapshot's positions.
Restored reclaim(stub::Worker& worker, const std::string& directory);

// Writes the pending calls back into the program's memory and lets the worker consume them: irrevocable. Cannot fail.
void proceed(stub::Worker& worker, const Restored& restored);

}  // namespace vgpu::checkpoint
