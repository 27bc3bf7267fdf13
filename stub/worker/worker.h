// Executes one session's calls on this host's GPUs: consumes its rings.
//
// Owns the mapped segment and host arena, the contexts, the tables from virtual to real handles, and a thread for each GPU that the session
// uses, which consumes that GPU's ring (ring-consumer.h) and is started when the ring is first used. The functions below are called from
// the control thread; each returns when the threads have done what was asked.
//
// A suspend keeps only a position in each ring: the rest is rebuilt from recipes and bytes.
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

// Descriptors of the attached memory; they stay the worker's.
struct SharedFiles {
  int segment = -1, hostArena = -1;
};

class Worker {
 public:
  // Creates the first device's context; that of another device when the session first uses it. Throws kj::Exception if the driver refuses.
  // What `images` and `launches` point to must outlive the worker. `outputFile`: the result of DeviceOutput::redirect(). `fold`: when
  // launches are folded into graphs, if the program does not set it. `libraryFolder`: see Libraries.
  explicit Worker(const Driver& driver, const Images& images = {}, int outputFile = -1, FoldMode fold = FoldMode::AUTO,
                  LaunchCounters* launches = nullptr, const std::string& libraryFolder = {});
  ~Worker();

  // Detaches what was attached before, maps the session's memory after checking its size and seals, and registers it with the driver.
  // Throws kj::Exception that names what was wrong; the worker is then of no further use.
  void attach(MemoryFile segment, MemoryFile hostArena);
  SharedFiles sharedFiles() const;
  // Sets how the session, whose memory is attached, shares objects with other sessions. Before the first proceed().
  void shareBy(std::shared_ptr<Exchange> exchange);

  // Starts or resumes consuming frames, also after a quiesce() that was given up.
  void proceed();

  // Stops each thread between two frames, waits until the GPUs are idle, and returns the position of the first unconsumed frame of the
  // first ring. Meanwhile `waiting` is called ten times a second with the name of the kernel that is waited for, empty if it is not known.
  // Its exceptions are passed on; then nothing is consumed until proceed().
  uint64_t quiesce(const std::function<void(const std::string& kernel)>& waiting = nullptr);

  // Runs `work` on the first GPU's thread while each thread is between two frames; they go on afterwards. `idle`: while also no GPU has
  // work; the threads stop for at most `limit` to wait for that. False, without running `work`, if that state is not reached in time.
  // Exceptions from `work` are passed on. A worker that executes no calls, as after quiesce(), stays stopped.
  bool interlude(bool idle, std::chrono::milliseconds limit, const std::function<void(SessionState&)>& work);
  // The names of the calls that threads execute now, for a message about an interlude that did not start in time.
  std::vector<std::string> executing() const;

  // After quiesce(), when the session has ended: destroys all that it has made and leaves the worker like a new one, except that the first
  // device's context stays. No memory is attached then. Throws kj::Exception if the driver refuses, or if the session leaves something that
  // cannot be destroyed; the worker is then of no further use.
  void recycle();
  // The first half of recycle(), for a caller that needs the GPUs' memory at once: only recycle() may follow.
  void release();

  // Runs `work` on the first GPU's thread while no thread consumes: after quiesce(), or before the first proceed().
  void runQuiesced(std::function<void(SessionState&)> work);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace vgpu::stub
