// A session on disk: save and restore of a snapshot directory (docs/snapshot.md is the format).
//
// Both run in the worker process, on a quiesced worker, because the object list and the snapshot come from an untrusted
// program: what they could harm is this session's worker only.
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
  uint64_t copiedBytes = 0;                // of chunks that are no zeros, and that were not known by their digests
  PhaseTimes phases;                       // what the time went to, in order
  unsigned rounds = 0;                     // of a snapshot whose program goes on (live-snapshot.h)
  uint64_t roundBytes = 0, heldBytes = 0;  // likewise: copied while it ran, and while it was held
  uint64_t twinBytes = 0;                  // of a restore: that came from another session's GPU memory (twin-memory.h)
  uint64_t aheadObjects = 0;               // of a migration: that were made at the target before the program was held
};

// Called from the working thread, at most every 100 ms or so. `phase` is one word for a person.
using Progress = std::function<void(const char* phase, uint64_t doneBytes, uint64_t totalBytes)>;

// Writes a snapshot of `worker`, quiesced, with `writer`. `objects` is the directory of the object list, committed after
// the gate was closed. The manifest comes last and atomically. Throws kj::Exception; there is no snapshot then, and what was
// written is the target's to remove. With `room`, chunks go there as far as it goes, and the snapshot is one of that memory.
Report save(stub::Worker& worker, SnapshotWriter& writer, const std::string& objects, const Identity& identity,
            const Progress& progress, const PinnedRoom* room = nullptr);
// The same into `directory` (made if it is not there; must be empty), of which nothing is left where it fails.
Report save(stub::Worker& worker, const std::string& directory, const std::string& objects, const Identity& identity,
            const Progress& progress);

// The objects of a snapshot, in order of their first frames' positions, all of them alive; checks as restore does.
void readObjects(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit);

// A session rebuilt in a worker, and what the program's memory must have before the worker may consume.
struct Restored {
  Report report;
  PendingCalls pending;
};

// What a restore takes from elsewhere than files.
struct RestoreFrom {
  const PinnedRoom* room = nullptr;          // chunks that it has come from there, also those of a snapshot that has all in files
  SentAhead* ahead = nullptr;                // what a migration has sent ahead into this worker
  const std::vector<TwinMemory>* twin = nullptr;  // what a session of the same snapshot has on its GPUs
  bool memoryLater =
      false;  // what the program has written into the segment is not there yet; requireMemory() is called when it is
};

// Rebuilds the session in a fresh worker, to which the program's memory has been attached and which does not consume
// yet. Changes nothing of that memory, so all can still be undone by ending the worker. Throws kj::Exception that names the
// file and the check, or the symbol whose address differs; the worker is of no further use then.
Restored restore(stub::Worker& worker, const std::string& directory, const Progress& progress, const RestoreFrom& from = {});
// Throws kj::Exception if the program's memory is not at the snapshot's place.
void requireMemory(stub::Worker& worker, const Restored& restored);

// Of a worker that was saved to `directory` and has done nothing since: what restore() would give, with nothing rebuilt. Throws
// kj::Exception if the program's memory, which it still has attached, is not at the snapshot's place.
Restored reclaim(stub::Worker& worker, const std::string& directory);

// Puts the pending calls back into the program's memory and lets the worker consume them: no way back. Does not fail.
void proceed(stub::Worker& worker, const Restored& restored);

}  // namespace vgpu::checkpoint
