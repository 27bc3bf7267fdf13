// The thread on which a worker does long work, in the order of the requests, so that its event loop can still reply and report progress.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "tools/common/cross-thread.h"

namespace vgpu::stub {

class WorkThread {
 public:
  WorkThread();
  // Waits for the work in progress; drops work that has not begun.
  ~WorkThread();
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  // Runs `work` on the thread. The promise belongs to the caller's event loop; dropping it does not stop the work.
  template <typename Work>
  auto run(Work work) -> kj::Promise<decltype(work())> {
    auto [job, result] = crossThread(kj::mv(work));
    add(kj::mv(job));
    return kj::mv(result);
  }

 private:
  void add(kj::Function<void()> job);
  void loop();

  std::mutex mutex;  // guards the two members below
  std::deque<kj::Function<void()>> jobs;
  bool ending = false;
  std::condition_variable changed;
  std::thread thread;
};

}  // namespace vgpu::stub
