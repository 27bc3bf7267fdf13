// A few threads that share a large copy: one core moves 5 GB/s of pageable memory, eight 37 (FACTS.md), and the link 55.
//
// Started at the first large copy, on machines with cores to spare. Each works for the session like any program thread,
// with a slot of its own. `mutex` is a leaf: no frame is made under it. One copy at a time has the crew; a second one
// that comes meanwhile does its work alone.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "intercept/session/thread.h"

namespace vgpu {

class CopyCrew {
 public:
  using Work = std::function<CUresult(Thread& thread, uint64_t piece)>;

  // Calls `work` for every piece below `count`, on the calling thread and the crew, all with the caller's current
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

  std::mutex mutex;
  std::condition_variable changed;
  Task* task = nullptr;
  uint64_t round = 0;   // counts the tasks, so that a thread does not take one twice
  unsigned helping = 0;
  std::vector<std::thread> threads;
};

}  // namespace vgpu
