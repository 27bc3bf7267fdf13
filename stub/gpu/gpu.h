// One GPU of a worker: its context, what is real behind the session's virtual objects there, and how far it has come.
//
// Used by the thread that executes this GPU's calls, and by the one that saves or restores the session while no calls are
// executed; other GPUs' threads read `executed`, and what the parts say of themselves. A suspend keeps nothing of it but
// `executed`: recipes and bytes bring it back (docs/snapshot.md).
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
    if (context.isTaken()) context.select();  // for what its parts destroy
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Driver& driver;
  const unsigned device;
  PrimaryContext context;  // taken when the GPU is first used; ends after the parts
  HandleMap handles;
  DeviceLeases leases;
  DeviceProgress progress;
  Continuations later;
  TileDigests digests;
  FoldedGraphs folded;

  // The position in its ring before which all frames have been executed, which means issued to the GPU. Another GPU's thread that
  // loads it (acquire) may issue what must come after them (docs/ring.md).
  std::atomic<uint64_t> executed{0};

  // Makes its context the calling thread's.
  void select() const { require(driver, context.select(), "changing device"); }

  // The functions below are for the thread that has selected it.

  // Whether the program has given up what a fault has ended: nothing more is done there, and a snapshot has nothing of it.
  bool isEnded() const { return ended; }
  void end() { ended = true; }

  // Whether something is to be done when the GPU has come farther; does what is due.
  bool isAwaited() const { return !later.isEmpty() || progress.isAsking(); }
  void pollAwaited() {
    progress.ask();
    later.poll(progress);
  }

  // Whether every stream is idle: success, not ready, or the error that ended the context.
  CUresult query();

  // Notes that `function` has been launched into `stream`, both virtual handles.
  void launched(uint64_t stream, uint64_t function) {
    launches[stream % launchPlaces] = {stream, function};
    counts->countLaunch();
  }
  // The last function that was launched into a stream which has work; 0 if that is not known.
  uint64_t busyFunction();

  // Where kernels are counted: memory that somebody else reads, if anybody does.
  LaunchCounters::OfGpu* counts = &unread;

 private:
  // The last launch of a stream; of two streams with one place, the later one's.
  struct Launch {
    uint64_t stream = 0, function = 0;
  };
  static constexpr uint64_t launchPlaces = 64;

  bool ended = false;
  LaunchCounters::OfGpu unread;
  std::array<Launch, launchPlaces> launches;
};

}  // namespace vgpu::stub
