#include "stub/emulator/ptx/run/pool.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace vgpu::emulator {
namespace {

class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void run(int workers, const std::function<void(int)>& work) {
    Round round{&work, workers - 1};
    {
      const std::lock_guard lock(mutex);
      for (int i = 1; i < workers; ++i) tasks.push_back({&round, i});
      while (idle + static_cast<int>(starting) < static_cast<int>(tasks.size())) {
        ++starting;
        threads.emplace_back([this] { serve(); });
      }
    }
    wake.notify_all();
    work(0);
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return round.left == 0; });
  }

 private:
  struct Round {
    const std::function<void(int)>* work;
    int left;
  };
  struct Task {
    Round* round;
    int index;
  };

  void serve() {
    std::unique_lock lock(mutex);
    --starting;
    while (true) {
      ++idle;
      wake.wait(lock, [&] { return ending || !tasks.empty(); });
      --idle;
      if (tasks.empty()) return;
      const Task task = tasks.front();
      tasks.pop_front();
      lock.unlock();
      (*task.round->work)(task.index);
      lock.lock();
      if (--task.round->left == 0) done.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  std::deque<Task> tasks;
  std::vector<std::thread> threads;
  int idle = 0, starting = 0;
  bool ending = false;
};

}  // namespace

void runOnWorkers(int workers, const std::function<void(int)>& work) {
  if (workers <= 1) return work(0);
  static Pool pool;
  pool.run(workers, work);
}

}  // namespace vgpu::emulator
