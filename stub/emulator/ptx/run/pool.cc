#include "stub/emulator/ptx/run/pool.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
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
    Round round{work};
    {
      const std::lock_guard lock(mutex);
      while (free() < workers - 1 && startThread()) {
      }
      round.workers = std::min(workers, 1 + free());
      round.left = round.workers - 1;
      tasks.insert(tasks.end(), static_cast<size_t>(round.left), &round);
    }
    wake.notify_all();
    work(round.workers);
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return round.left == 0; });
  }

 private:
  struct Round {
    const std::function<void(int)>& work;
    int workers = 1;
    int left = 0;  // number of other threads that have not returned
  };

  // Number of threads without a task. The mutex is held.
  int free() const { return idle + starting - static_cast<int>(tasks.size()); }

  // False if the system refuses a thread. The mutex is held.
  bool startThread() try {
    threads.emplace_back([this] { serve(); });
    ++starting;
    return true;
  } catch (const std::exception&) {
    return false;
  }

  void serve() {
    std::unique_lock lock(mutex);
    --starting;
    while (true) {
      ++idle;
      wake.wait(lock, [&] { return ending || !tasks.empty(); });
      --idle;
      if (tasks.empty()) return;
      Round& round = *tasks.front();
      tasks.pop_front();
      lock.unlock();
      round.work(round.workers);
      lock.lock();
      if (--round.left == 0) done.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  std::deque<Round*> tasks;  // one entry for each thread that is still to join
  std::vector<std::thread> threads;
  int idle = 0, starting = 0;
  bool ending = false;
};

}  // namespace

void runOnWorkers(int workers, const std::function<void(int)>& work) {
  if (workers <= 1) return work(1);
  static Pool pool;
  pool.run(workers, work);
}

}  // namespace vgpu::emulator
