// Returns leased memory that the program has not needed for a while. Mapping and unmapping a gigabyte takes the driver as long as a kernel
// that works on all of it, so freed memory is kept for a period in which the program may allocate it again; memory that was idle for a
// whole period is returned, for other programs. So is memory freed in streams, once these have passed the free. The driver unmaps pinned
// memory only when all work has ended, so that is returned if no GPU has work then. A suspend has such frees completed first, because the
// snapshot would contain their bytes.
//
// One thread, started the first time that more memory is free than is always kept, or at a suspend with such frees; it sleeps while there
// is nothing to return. It makes calls as the program's threads do, with no lock held; `mutex` is a leaf lock. It lives as long as the
// process and survives a suspend.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Session;

class IdleMemory {
 public:
  // Tells the thread that there is memory to return later. Any thread, with no lock held; takes none if the thread knows already.
  void note(Session& session) {
    if (!noted.load(std::memory_order_relaxed)) wake(session);  // only a hint: the thread checks what is free under a lock
  }
  // Completes stream-ordered frees whose preceding work has finished on the GPU. Called on the control thread, which must not wait for
  // space in the ring, so the idle-memory thread does it. Waits for that thread, and then for the worker to execute the frees, until
  // `givesUp`, or for a tenth of a second in all.
  void completeFrees(Session& session, const std::function<bool()>& givesUp);

 private:
  using Time = std::chrono::steady_clock::time_point;
  void start(Session& session);  // under `mutex`
  void wake(Session& session);
  void serve(Session& session);
  // Sleeps until `until`, or if that is empty until there is memory to return. Completes frees meanwhile when completeFrees() asks for it.
  void await(Session& session, std::optional<Time> until);
  // Whether the workers have executed all frames that were in the rings when frees were last completed. Under `mutex`.
  bool areExecuted(const Session& session) const;

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> noted{false};  // changes under `mutex`
  uint64_t asked = 0, completed = 0;  // numbers of completeFrees() calls: made, and served by the thread
  std::array<uint64_t, maxDevices> heads{};  // of the rings, after the thread served the last call
  std::thread thread;
};

}  // namespace vgpu::client
