// One session's calls on this host's GPUs: the consumer of its ring.
//
// Owns the mapped segment and host arena, the contexts, and the table from virtual to real handles. One working thread
// consumes the ring and, while no frames come, looks after the GPU, so that a faulted context becomes a reply for every
// waiter. The functions below are called from the control thread; each returns when the working thread has done what was asked.
//
// Of this, a suspend keeps nothing but the barrier position: the rest is rebuilt from recipes and bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stub/driver/driver.h"
#include "stub/worker/images.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::stub {

class SessionState;  // session-state.h

// Descriptors of the memory that is attached; the worker's own.
struct SharedFiles {
  int segment = -1, hostArena = -1;
};

class Worker {
 public:
  // Creates the contexts of every device. Throws kj::Exception where the driver refuses. What `images` points to must
  // outlive the worker. `outputFile`: what DeviceOutput::redirect() has returned.
  explicit Worker(const Driver& driver, const Images& images = {}, int outputFile = -1);
  ~Worker();

  // Maps the session's memory, after checking size and seals, and registers it with the driver, in the place of what was
  // attached before. Throws kj::Exception that names what was wrong; the worker is then of no further use.
  void attach(MemoryFile segment, MemoryFile hostArena);
  SharedFiles sharedFiles() const;

  // Begins, or goes on, to consume frames, also where a quiesce() has been given up.
  void proceed();

  // Stops between two frames, waits until the GPU is idle, and returns the position of the first unconsumed frame. `waiting`
  // is called meanwhile, ten times a second, with the name of the kernel that is waited for, empty where it is not known.
  // What it throws comes out here; nothing is consumed then until proceed().
  uint64_t quiesce(const std::function<void(const std::string& kernel)>& waiting = nullptr);

  // Runs `work` on the working thread while it does not consume: after quiesce(), or before the first proceed().
  void runQuiesced(std::function<void(SessionState&)> work);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace vgpu::stub
