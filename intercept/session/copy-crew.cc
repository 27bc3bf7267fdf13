#include "intercept/session/copy-crew.h"

#include <algorithm>
#include <cstdlib>

#include "intercept/session/quiet-thread.h"

namespace vgpu {

namespace {

// What VGPU_COPY_THREADS says; else half the cores, the caller among them: the program has other things to do. None where
// cores are few.
unsigned crewSize() {
  if (const char* asked = getenv("VGPU_COPY_THREADS")) return static_cast<unsigned>(std::clamp(atoi(asked), 0, 32));
  unsigned cores = std::thread::hardware_concurrency();
  return cores <= 2 ? 0 : std::min(cores / 2, 8u) - 1;
}

}  // namespace

void CopyCrew::help(Thread& thread, Task& task) {
  for (uint64_t piece; (piece = task.next.fetch_add(1)) < task.count;) {
    if (task.result.load() != CUDA_SUCCESS) return;
    int none = CUDA_SUCCESS;
    CUresult result = (*task.work)(thread, piece);
    if (result != CUDA_SUCCESS) task.result.compare_exchange_strong(none, result);
  }
}

void CopyCrew::start(Session& session) {
  for (unsigned i = 0; i < crewSize(); ++i)
    threads.push_back(startQuietThread("vgpu-copy", [this, &session] { serve(session); }));
}

// The threads live as long as the process.
void CopyCrew::serve(Session& session) {
  Thread& thread = Thread::current(session);
  std::unique_lock lock(mutex);
  for (uint64_t seen = 0;;) {
    changed.wait(lock, [&] { return task != nullptr && round != seen; });
    seen = round;
    Task& mine = *task;
    ++helping;
    lock.unlock();
    thread.contextStack.assign(1, mine.context);
    help(thread, mine);
    lock.lock();
    --helping;
    changed.notify_all();
  }
}

CUresult CopyCrew::share(Thread& caller, uint64_t count, const Work& work) {
  Task mine{.work = &work, .count = count, .context = caller.contextStack.back()};
  std::unique_lock lock(mutex);
  if (task != nullptr) {
    lock.unlock();
    help(caller, mine);
    return static_cast<CUresult>(mine.result.load());
  }
  if (threads.empty()) start(caller.session);
  task = &mine;
  ++round;
  changed.notify_all();
  lock.unlock();
  help(caller, mine);
  lock.lock();
  task = nullptr;
  changed.wait(lock, [&] { return helping == 0; });
  return static_cast<CUresult>(mine.result.load());
}

}  // namespace vgpu
