// One session's calls on this host's GPUs: the consumer of its rings.
//
// Owns the mapped segment and host arena, the contexts, the tables from virtual to real handles, and a thread for each GPU that
// the session uses, which consumes that GPU's ring (ring-consumer.h); it is started when the ring is first used. The functions
// below are called from the control thread; each returns when the threads have done what was asked.
//
// Of this, a suspend keeps nothing but a position in each ring: the rest is rebuilt from recipes and bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stub/driver/driver.h"
#include "stub/worker/images.h"
#include "vgpu/base/memory-file.h"
#include "vgpu/wire/fold-mode.h"
#include "vgpu/wire/launch-counters.h"

namespace vgpu::stub {

class Exchange;      // exchange.h
class SessionState;  // session-state.h

// Descriptors of the memory that is attached; the worker's own.
struct SharedFiles {
  int segment = -1, hostArena = -1;
};

class Worker {
 public:
  // Makes the first device's context; another's is made when the session first uses it. Throws kj::Exception where the driver
  // refuses. What `images` and `launches` point to must outlive the worker. `outputFile`: what DeviceOutput::redirect() has returned.
  // `fold`: when launches are folded into graphs, if the program does not say. `libraryFolder`: see Libraries.
  explicit Worker(const Driver& driver, const Images& images = {}, int outputFile = -1, FoldMode fold = FoldMode::AUTO,
                  LaunchCounters* launches = nullptr, const std::string& libraryFolder = {});
  ~Worker();

  // Maps the session's memory, after checking size and seals, and registers it with the driver, in the place of what was
  // attached before. Throws kj::Exception that names what was wrong; the worker is then of no further use.
  void attach(MemoryFile segment, MemoryFile hostArena);
  SharedFiles sharedFiles() const;
  // By which the session, whose memory is attached, shares with others. Before the first proceed().
  void shareBy(std::shared_ptr<Exchange> exchange);

  // Begins, or goes on, to consume frames, also where a quiesce() has been given up.
  void proceed();

  // Stops each thread between two frames, waits until the GPUs are idle, and returns the position of the first unconsumed frame
  // of the first ring. `waiting` is called meanwhile, ten times a second, with the name of the kernel that is waited for, empty
  // where it is not known. What it throws comes out here; nothing is consumed then until proceed().
  uint64_t quiesce(const std::function<void(const std::string& kernel)>& waiting = nullptr);

  // Runs `work` on the first GPU's thread between two frames of each thread, which go on after it; `idle`: while no GPU has any
  // work, for which they stop for so long at most. False, and `work` was not run, if that does not come about in time. What it
  // throws comes out here. A worker that executes no calls, as after quiesce(), executes none afterwards.
  bool interlude(bool idle, std::chrono::milliseconds limit, const std::function<void(SessionState&)>& work);
  // The names of the calls that threads execute at this moment, for a person who asks why an interlude did not come about.
  std::vector<std::string> executing() const;

  // After quiesce(), when the session has ended: destroys all that it has made, as if this worker were a new one, but for the
  // first device's context, which stays. No memory is attached then. Throws kj::Exception if the driver refuses, or if the session
  // leaves something that cannot be destroyed; the worker is then of no further use.
  void recycle();
  // The first half of it, for who needs the GPUs free at once: recycle() is all that may follow.
  void release();

  // Runs `work` on the first GPU's thread while no thread consumes: after quiesce(), or before the first proceed().
  void runQuiesced(std::function<void(SessionState&)> work);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace vgpu::stub
