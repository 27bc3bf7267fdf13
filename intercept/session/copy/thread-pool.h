// A few threads that share a large copy: one core copies 5 GB/s of pageable memory, eight copy 37 (docs/facts.md), and the link transfers
// 55.
//
// Started at the first large copy, on machines with spare cores. Each thread works for the session like any program thread. `mutex` is a
// leaf lock: no frame is sent under it. One copy at a time has the thread pool, until its last helper has finished; a second copy meanwhile
// runs on its own thread alone. If helpers of the first copy could start on the second, the first caller would wait for that too, and the
// second copy may wait for what the first caller does next.
//
// Waking a sleeping thread takes longer than copying a megabyte, so a helper spins for a while for the next copy before it sleeps, and the
// caller spins for a while for the last helper.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "intercept/session/thread.h"

namespace vgpu::client {

class CopyThreadPool {
 public:
  using Work = std::function<CUresult(Thread& thread, uint64_t piece)>;

  // The number of helper threads: VGPU_COPY_THREADS, else by the number of cores; 0 with few cores. Fewer if the GPU is on another host:
  // the link is slower than the threads, and its transfer needs cores.
  static unsigned size(const Session& session);

  // Calls `work` for every piece below `count`, on the calling thread and the thread pool, all with the caller's current context. Returns
  // after all calls have returned. The result is the first failure, after which no new piece is started.
  CUresult share(Thread& caller, uint64_t count, const Work& work);

 private:
  struct Task {
    const Work* work;
    uint64_t count, context;
    std::atomic<uint64_t> next{0};
    std::atomic<int> result{CUDA_SUCCESS};
  };
  static void help(Thread& thread, Task& task);
  void serve(Session& session);
  void start(Session& session);
  void lookForNext(uint64_t seen) const;
  void awaitHelpers();

  // Set by a caller from before it sets `task` until no thread helps any more. Acquire/release: so the next caller finds no helper at work.
  std::atomic<bool> isTaken{false};
  std::mutex mutex;
  std::condition_variable changed;
  Task* task = nullptr;
  std::atomic<uint64_t> round{0};  // counts the tasks, so that a thread takes none twice; written under `mutex`
  unsigned sleeping = 0;           // helpers that wait for `changed`
  std::atomic<unsigned> helping{0};  // raised under `mutex` while there is a task; the caller waits for 0
  std::vector<std::thread> threads;
};

}  // namespace vgpu::client
