#include "intercept/session/copy/thread-pool.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "intercept/session/background-thread.h"
#include "intercept/session/cancellation.h"
#include "intercept/session/failure.h"

namespace vgpu::client {

namespace {

// The duration of some copies of a megabyte, so that a program that copies in a loop finds its helpers awake.
constexpr auto lookTime = std::chrono::microseconds(100);
// The limit if the GPU is on another host: four threads saturate a loopback connection; eight, most of which spin, halve its rate
// (docs/performance/migration.md).
constexpr unsigned mostElsewhere = 3;

// VGPU_COPY_THREADS, else half the cores including the caller's: the program has other work.
unsigned wantedSize() {
  if (const char* asked = getenv("VGPU_COPY_THREADS")) return static_cast<unsigned>(std::clamp(atoi(asked), 0, 32));
  unsigned cores = std::thread::hardware_concurrency();
  return cores <= 2 ? 0 : std::min(cores / 2, 8u) - 1;
}

}  // namespace

unsigned CopyThreadPool::size(const Session& session) {
  static const unsigned size = wantedSize();
  return session.memory.sharesHost() ? size : std::min(size, mostElsewhere);
}

void CopyThreadPool::help(Thread& thread, Task& task) {
  for (uint64_t piece; (piece = task.next.fetch_add(1)) < task.count;) {
    if (task.result.load() != CUDA_SUCCESS) return;
    int none = CUDA_SUCCESS;
    CUresult result = answerOf([&] { return (*task.work)(thread, piece); });
    if (result != CUDA_SUCCESS) task.result.compare_exchange_strong(none, result);
  }
}

// If no thread can be created, the pool stays smaller and the next copy tries again.
void CopyThreadPool::start(Session& session) try {
  const unsigned wanted = size(session);
  threads.reserve(wanted);  // so that adding a started thread cannot throw
  while (threads.size() < wanted) threads.push_back(startBackgroundThread("vgpu-copy", [this, &session] { serve(session); }));
} catch (const std::exception&) {
}

// Relaxed: the data that the number announces are read under `mutex`.
void CopyThreadPool::lookForNext(uint64_t seen) const {
  auto end = std::chrono::steady_clock::now() + lookTime;
  while (round.load(std::memory_order_relaxed) == seen && std::chrono::steady_clock::now() < end) _mm_pause();
}

// The threads live as long as the process.
void CopyThreadPool::serve(Session& session) {
  Thread& thread = Thread::current(session);
  std::unique_lock lock(mutex);
  for (uint64_t seen = 0;;) {
    ++sleeping;
    changed.wait(lock, [&] { return round.load(std::memory_order_relaxed) != seen; });
    --sleeping;
    seen = round.load(std::memory_order_relaxed);
    if (Task* mine = task; mine != nullptr && helping.load(std::memory_order_relaxed) < size(session)) {
      helping.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      thread.contextStack.assign(1, mine->context);
      help(thread, *mine);
      // Release: the caller, which loads 0 (acquire) before it continues, sees what this thread copied.
      if (helping.fetch_sub(1, std::memory_order_release) == 1) helping.notify_all();
    } else {
      lock.unlock();
    }
    lookForNext(seen);
    lock.lock();
  }
}

CUresult CopyThreadPool::share(Thread& caller, uint64_t count, const Work& work) {
  Task mine{.work = &work, .count = count, .context = caller.contextStack.back()};
  if (isTaken.exchange(true, std::memory_order_acquire)) {
    help(caller, mine);
    return static_cast<CUresult>(mine.result.load());
  }
  CancellationOff untilShared;  // the helpers use `mine`
  {
    std::lock_guard lock(mutex);
    if (threads.size() < size(caller.session)) start(caller.session);
    task = &mine;
    round.fetch_add(1, std::memory_order_relaxed);
    for (uint64_t i = 1; i < count && i <= sleeping; ++i) changed.notify_one();
  }
  help(caller, mine);
  {
    std::lock_guard lock(mutex);
    task = nullptr;
  }
  awaitHelpers();
  isTaken.store(false, std::memory_order_release);
  return static_cast<CUresult>(mine.result.load());
}

void CopyThreadPool::awaitHelpers() {
  auto end = std::chrono::steady_clock::now() + lookTime;
  for (unsigned left; (left = helping.load(std::memory_order_acquire)) != 0;) {
    if (std::chrono::steady_clock::now() < end) {
      _mm_pause();
    } else {
      helping.wait(left, std::memory_order_acquire);
    }
  }
}

}  // namespace vgpu::client
