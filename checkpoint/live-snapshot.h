// A snapshot of a session whose program goes on.
//
// First, while it runs, rounds: the GPUs digest their memory, which takes milliseconds, and what the sink does not know yet is
// copied to it, a few chunks at a time between two frames. Then, under a quiesce, they digest it once more. What was copied is
// known by its content, so a chunk that has changed since, or while it was copied, is just another one that is missing. Those go
// to pinned memory that was made before, beyond it to memory that the GPUs have left, and then to the daemon's; the program goes
// on, and the rest is written.
//
// Owns what is held meanwhile. Of the thread that controls the worker; the steps in this order, each once. Destroyed before the
// last, it leaves nothing but files of the target, which are their owner's to remove.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "checkpoint/held-memory.h"
#include "checkpoint/live-copy.h"
#include "checkpoint/session-capture.h"
#include "checkpoint/spare-memory.h"
#include "stub/gpu/primary-context.h"

namespace vgpu::checkpoint {

class LiveSnapshot {
 public:
  // `worker` must live longer. `mostPinned`: of what is held, so much is pinned memory at most.
  LiveSnapshot(const stub::Driver& driver, stub::Worker& worker, std::unique_ptr<SnapshotWriter> writer,
               uint64_t mostPinned = HeldMemory::most);
  ~LiveSnapshot();

  // While the program runs.
  void runRounds(const Progress& progress);
  // While it is quiesced. `room`: of the daemon's memory, which is this operation's until finish() has returned, or nullptr. What
  // finds no room in memory is written at once.
  void capture(const std::string& objects, const Identity& identity, const Progress& progress, const PinnedRoom* room = nullptr);
  // While it runs again. From here on there is a snapshot.
  Report finish(const Progress& progress);

 private:
  struct Held;
  struct Kept;
  bool findChanged(std::vector<DevicePiece>& changed, bool mustBeIdle);
  void copyChanged(const std::vector<DevicePiece>& changed, const Progress& progress);
  bool keep(stub::SessionState& on, const NewPiece& one, const DevicePiece& from);
  void writeKept(Phase& phase);
  void writeHeld(Phase& phase);

  const stub::Driver& driver;
  stub::Worker& worker;
  const std::unique_ptr<SnapshotWriter> writer;
  NewChunks chunks;
  stub::PrimaryContext context;  // for memory that is pinned and unpinned while the GPUs' threads work
  LiveCopy live;
  ImageDigests images;
  const uint64_t mostPinned;
  std::optional<HeldMemory> memory;  // for what has changed since the last round
  std::map<unsigned, SpareMemory> spare;  // by device: for the rest of that
  SessionCapture captured;
  std::vector<Held> held;
  std::vector<Kept> kept;
  Report report;
  PhaseClock clock;
};

}  // namespace vgpu::checkpoint
