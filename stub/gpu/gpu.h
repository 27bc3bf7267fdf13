// One GPU of a worker: its context, the real handles of the session's virtual objects there, and the progress of its work.
//
// Used by the thread that executes this GPU's calls, and by the one that saves or restores the session while no calls are executed; other
// GPUs' threads read `executed`, and the members that allow it. A suspend keeps only `executed`: recipes and bytes restore the rest
// (docs/snapshot.md).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "stub/driver/driver.h"
#include "stub/gpu/continuations.h"
#include "stub/gpu/device-leases.h"
#include "stub/gpu/device-progress.h"
#include "stub/gpu/folded-graphs.h"
#include "stub/gpu/handle-map.h"
#include "stub/gpu/primary-context.h"
#include "stub/gpu/tile-digests.h"
#include "vgpu/wire/launch-counters.h"

namespace vgpu::stub {

class Gpu {
 public:
  Gpu(const Driver& driver, unsigned device);
  ~Gpu() {
    if (context.isTaken()) context.select();  // for what the members destroy
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Driver& driver;
  const unsigned device;
  PrimaryContext context;  // created when the GPU is first used; destroyed after the members that follow
  HandleMap handles;
  DeviceLeases leases;
  DeviceProgress progress;
  Continuations later;
  TileDigests digests;
  FoldedGraphs folded;

  // The position in its ring before which all frames have been executed, that is, issued to the GPU. Another GPU's thread that loads it
  // (acquire) may then issue frames that must come after them (docs/ring.md).
  std::atomic<uint64_t> executed{0};

  // Makes its context current for the calling thread.
  void select() const { require(driver, context.select(), "changing device"); }

  // The functions below are for a thread for which its context is current.

  // Whether the program has discarded the GPU's objects after a fault: nothing more is done there, and a snapshot keeps nothing of it.
  bool isEnded() const { return ended; }
  void end() { ended = true; }

  // Whether continuations or marks are pending; pollAwaited() handles those that are due.
  bool isAwaited() const { return !later.isEmpty() || progress.isAsking(); }
  void pollAwaited() {
    progress.ask();
    later.poll(progress);
  }

  // The state of all streams: success if idle, not ready, or the error that ended the context.
  CUresult query();

  // Records that `function` has been launched into `stream`, both virtual handles.
  void launched(uint64_t stream, uint64_t function) {
    launches[stream % launchPlaces] = {stream, function};
    counts->countLaunch();
  }
  // The function launched last into a stream that still has work; 0 if it is not known.
  uint64_t busyFunction();

  // Where launches are counted: memory that another process may read.
  LaunchCounters::OfGpu* counts = &unread;

 private:
  // The last launch of a stream; streams that share a place overwrite each other's.
  struct Launch {
    uint64_t stream = 0, function = 0;
  };
  static constexpr uint64_t launchPlaces = 64;

  bool ended = false;
  LaunchCounters::OfGpu unread;
  std::array<Launch, launchPlaces> launches;
};

}  // namespace vgpu::stub
