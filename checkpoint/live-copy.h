// Copies device memory while the program runs, a few chunks at a time between two frames.
//
// A chunk may change during its copy and afterwards: the receiver identifies the bytes by their digest, and compares again when the worker
// is quiesced. Used by the thread that controls the worker.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/progress.h"
#include "checkpoint/slice-copy.h"
#include "checkpoint/state.h"
#include "stub/worker/worker.h"

namespace vgpu::checkpoint {

class LiveCopy {
 public:
  // Both must live longer.
  LiveCopy(const stub::Driver& driver, stub::Worker& worker) : driver(driver), worker(worker) {}

  // Runs `work` between two frames. Returns false if the session's thread stayed in the driver until the time limit.
  bool visit(const std::function<void(stub::SessionState&)>& work);

  // All pieces of device memory, with digests that are computed while no GPU has work, which takes milliseconds. Waits up to 50 ms for such
  // a moment, during which the program's calls are not executed; returns nothing if there was none.
  std::optional<std::vector<DevicePiece>> digested(const Digester& digester);
  // The same without digests.
  std::optional<std::vector<DevicePiece>> all();

  // Copies `pieces`, a few at a time between two frames; half of the time belongs to the program. `take` is not called for a piece that was
  // freed meanwhile. Throws kj::Exception if a copy fails, or what `take` throws.
  void copy(const std::vector<DevicePiece>& pieces, unsigned writers, Phase& phase, const TakePiece& take);

 private:
  class Streams;
  std::optional<std::vector<DevicePiece>> find(const Digester* digester);

  const stub::Driver& driver;
  stub::Worker& worker;
};

uint64_t bytesOf(const std::vector<DevicePiece>& pieces);

}  // namespace vgpu::checkpoint
