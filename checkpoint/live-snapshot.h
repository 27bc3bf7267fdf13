// A snapshot of a session whose program goes on.
//
// First, rounds while the program runs: the GPUs digest their memory, which takes milliseconds, and chunks that the sink does not know yet
// are copied to it, a few at a time between two frames. Then, under a quiesce, the GPUs digest once more. Copied chunks are identified by
// content, so a chunk that has changed since, or during its copy, is simply another missing chunk. Missing chunks go to pinned memory that
// was allocated in advance, when that is full to spare memory of the GPUs, and then to the daemon's pinned memory; the program goes on, and
// they are written.
//
// Owns the held memory. Used by the thread that controls the worker; call the steps in this order, each once. If destroyed before the last
// step, it leaves only files of the target, which their owner removes.
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
  // `worker` must live longer. `mostPinned`: limit of the pinned memory for held bytes.
  LiveSnapshot(const stub::Driver& driver, stub::Worker& worker, std::unique_ptr<SnapshotWriter> writer,
               uint64_t mostPinned = HeldMemory::most);
  ~LiveSnapshot();

  // While the program runs.
  void runRounds(const Progress& progress);
  // While the session is quiesced. `room`: in the daemon's memory, reserved for this operation until finish() has returned, or nullptr.
  // Bytes that fit nowhere in memory are written at once.
  void capture(const std::string& objects, const Identity& identity, const Progress& progress, const PinnedRoom* room = nullptr);
  // While the program runs again. The snapshot exists when this returns.
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
  stub::PrimaryContext context;  // for pinning and unpinning memory while the GPUs' threads work
  LiveCopy live;
  ImageDigests images;
  const uint64_t mostPinned;
  std::optional<HeldMemory> memory;  // for bytes changed since the last round
  std::map<unsigned, SpareMemory> spare;  // by device: for bytes that do not fit there
  SessionCapture captured;
  std::vector<Held> held;
  std::vector<Kept> kept;
  Report report;
  PhaseClock clock;
};

}  // namespace vgpu::checkpoint
