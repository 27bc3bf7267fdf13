#include "tools/worker/work-thread.h"

namespace vgpu::stub {

WorkThread::WorkThread() : thread([this] { loop(); }) {}

WorkThread::~WorkThread() {
  {
    std::lock_guard lock(mutex);
    ending = true;
    jobs.clear();
  }
  changed.notify_one();
  thread.join();
}

void WorkThread::add(kj::Function<void()> job) {
  {
    std::lock_guard lock(mutex);
    jobs.push_back(kj::mv(job));
  }
  changed.notify_one();
}

void WorkThread::loop() {
  while (true) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return ending || !jobs.empty(); });
    if (ending) return;
    kj::Function<void()> job = kj::mv(jobs.front());
    jobs.pop_front();
    lock.unlock();
    job();
  }
}

}  // namespace vgpu::stub
