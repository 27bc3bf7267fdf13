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
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(int workers, const std::function<void(int)>& work) {
    Round round{&work, workers - 1};
    {
      const std::lock_guard lock(mutex_);
      for (int i = 1; i < workers; ++i) tasks_.push_back({&round, i});
      while (idle_ + static_cast<int>(starting_) < static_cast<int>(tasks_.size())) {
        ++starting_;
        threads_.emplace_back([this] { serve(); });
      }
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return round.left == 0; });
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
    std::unique_lock lock(mutex_);
    --starting_;
    while (true) {
      ++idle_;
      wake_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      const Task task = tasks_.front();
      tasks_.pop_front();
      lock.unlock();
      (*task.round->work)(task.index);
      lock.lock();
      if (--task.round->left == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Task> tasks_;
  std::vector<std::thread> threads_;
  int idle_ = 0, starting_ = 0;
  bool ending_ = false;
};

}  // namespace

void runOnWorkers(int workers, const std::function<void(int)>& work) {
  if (workers <= 1) return work(0);
  static Pool pool;
  pool.run(workers, work);
}

}  // namespace vgpu::emulator
