// Returns leased memory that the program has not needed for a while. Mapping and unmapping a gigabyte takes the driver as long as a
// kernel that works on all of it, so freed memory is kept for a period in which the program may allocate it again; memory that was idle
// for a whole period is returned, for other programs. So is what was freed in streams, and is used until these have come so far. The
// driver lets go of pinned memory when all work has ended: that is returned if no GPU has any then. A suspend asks it to complete such
// frees at once, because a snapshot would have their bytes.
//
// One thread, started when there is first more free memory than is always kept, or a suspend with such frees; it sleeps while there is
// no such memory. It calls as the program's threads do, with no lock held; `mutex` is a leaf. It lives as long as the process, and stays
// in it over a suspend.
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
  // There is memory to return later. Any thread, with no lock held; takes none if the thread knows already.
  void note(Session& session) {
    if (!noted.load(std::memory_order_relaxed)) wake(session);  // a hint: the thread looks at what there is, under a lock
  }
  // Completes what was freed behind work that the GPUs have done. On the control thread, which must not wait for a place in the ring:
  // another one does it. That one, and then the worker, which executes these frees, are waited for until `givesUp`, or for a tenth of a
  // second in all.
  void completeFrees(Session& session, const std::function<bool()>& givesUp);

 private:
  using Time = std::chrono::steady_clock::time_point;
  void start(Session& session);  // under `mutex`
  void wake(Session& session);
  void serve(Session& session);
  // Until then, or without it until there is memory to return: completes frees when that is asked for.
  void await(Session& session, std::optional<Time> until);
  // Whether the workers have executed what was in the rings when frees were completed the last time. Under `mutex`.
  bool areExecuted(const Session& session) const;

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> noted{false};  // changes under `mutex`
  uint64_t asked = 0, completed = 0;  // of completeFrees(); the thread has done so many
  std::array<uint64_t, maxDevices> heads{};  // of the rings, when it had done them
  std::thread thread;
};

}  // namespace vgpu::client
