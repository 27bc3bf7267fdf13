// A few threads that share a large copy: one core moves 5 GB/s of pageable memory, eight 37 (docs/facts.md), and the
// link 55.
//
// Started at the first large copy, on machines with cores to spare. Each works for the session like any program thread. `mutex`
// is a leaf: no frame is made under it. One copy at a time has the thread pool, until its last helper has ended; a second one
// meanwhile runs on its own thread alone. If helpers began with the second one before, the first one's caller would wait for them too, and
// what they wait for may be what it does next.
//
// Waking a sleeping thread takes longer than copying a megabyte, so a helper spins for the next copy for a while before it
// sleeps, and the caller spins for a while for the last helper to end.
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

  // How many threads help the caller: from VGPU_COPY_THREADS, else by the number of cores; none if there are few cores. Fewer if the
  // GPU is elsewhere: the link is slower than they are, and the cores carry it.
  static unsigned size(const Session& session);

  // Calls `work` for every piece below `count`, on the calling thread and the thread pool, all with the caller's current
  // context. Returns when all have returned; the first failure, after which no new piece is begun.
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

  // By a caller, from before there is its task until no thread helps it. Acquire and release: so the next one finds no helper.
  std::atomic<bool> isTaken{false};
  std::mutex mutex;
  std::condition_variable changed;
  Task* task = nullptr;
  std::atomic<uint64_t> round{0};  // counts the tasks, so that a thread does not take one twice; written under `mutex`
  unsigned sleeping = 0;           // helpers, in `changed`
  std::atomic<unsigned> helping{0};  // raised under `mutex` while there is a task; the caller waits for 0
  std::vector<std::thread> threads;
};

}  // namespace vgpu::client
