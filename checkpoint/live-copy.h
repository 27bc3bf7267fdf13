// Copies of device memory that are made while the program runs, a few chunks at a time between two frames.
//
// A chunk may change while it is copied, and after it: whoever gets the bytes knows them by their digest, and compares again when
// the worker is quiesced. Of the thread that controls the worker.
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

  // Between two frames. False if that did not come about in time: its thread is in the driver.
  bool visit(const std::function<void(stub::SessionState&)>& work);

  // All pieces of device memory; with their digests while no GPU has work, which takes milliseconds. Nothing if there was no such
  // moment within 50 ms, for which the program's calls are not executed.
  std::optional<std::vector<DevicePiece>> digested(const Digester& digester);
  // Without digests.
  std::optional<std::vector<DevicePiece>> all();

  // Copies `pieces`, a few at a time between two frames; half of the time is the program's. `take` does not get one that is gone.
  // Throws kj::Exception if a copy fails, or what `take` throws.
  void copy(const std::vector<DevicePiece>& pieces, unsigned writers, Phase& phase, const TakePiece& take);

 private:
  class Streams;
  std::optional<std::vector<DevicePiece>> find(const Digester* digester);

  const stub::Driver& driver;
  stub::Worker& worker;
};

uint64_t bytesOf(const std::vector<DevicePiece>& pieces);

}  // namespace vgpu::checkpoint
