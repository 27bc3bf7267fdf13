// The thread on which a worker does long work, in the order of the requests, so that its event loop can still reply and report
// progress.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace vgpu::stub {

class WorkThread {
 public:
  WorkThread();
  // Waits for the work in progress; work that has not begun is dropped.
  ~WorkThread();
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  // Runs `work` on the thread. The promise belongs to the caller's event loop; dropping it does not stop the work.
  template <typename Work>
  auto run(Work work) -> kj::Promise<decltype(work())> {
    auto pair = kj::newPromiseAndCrossThreadFulfiller<decltype(work())>();
    add([work = kj::mv(work), fulfiller = kj::mv(pair.fulfiller)]() mutable {
      fulfiller->rejectIfThrows([&] { fulfiller->fulfill(work()); });
    });
    return kj::mv(pair.promise);
  }

 private:
  void add(kj::Function<void()> job);
  void loop();

  std::mutex mutex;  // guards the two below
  std::deque<kj::Function<void()>> jobs;
  bool ending = false;
  std::condition_variable changed;
  std::thread thread;
};

}  // namespace vgpu::stub
