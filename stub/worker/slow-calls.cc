#include "stub/worker/slow-calls.h"

#include <exception>
#include <utility>

namespace vgpu::stub {

SlowCalls::~SlowCalls() {
  {
    std::lock_guard lock(mutex);
    ending = true;
  }
  changed.notify_all();
  if (thread.joinable()) thread.join();
}

void SlowCalls::add(Work work, End end, const char* name) {
  calls.push_back({std::move(work), std::move(end), name});
  if (calls.size() == 1) beginFirst();
}

void SlowCalls::afterAll(std::function<void()> rest) {
  if (calls.empty()) return rest();
  calls.push_back({nullptr, [rest = std::move(rest)](CUresult) { rest(); }});
}

void SlowCalls::beginFirst() {
  if (calls.front().work == nullptr || std::exchange(started, true)) return;
  std::unique_lock lock(mutex);
  given = &calls.front().work;
  if (thread.joinable()) return changed.notify_all();
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::exception&) {  // the system refuses a thread: the ring waits for this call
    runGiven(lock, false);
  }
}

void SlowCalls::poll() {
  while (!calls.empty()) {
    beginFirst();
    CUresult ofWork = CUDA_SUCCESS;
    if (started && !takeResult(ofWork)) return;
    started = false;
    // Removed before its end runs, because the end may add calls.
    Call ended = std::move(calls.front());
    calls.pop_front();
    ended.end(ofWork);
  }
}

bool SlowCalls::isDue() {
  if (calls.empty()) return false;
  std::lock_guard lock(mutex);
  return done;
}

// False if the work is not done yet.
bool SlowCalls::takeResult(CUresult& taken) {
  std::lock_guard lock(mutex);
  if (!std::exchange(done, false)) return false;
  KJ_IF_MAYBE (exception, std::exchange(failure, nullptr)) kj::throwFatalException(kj::mv(*exception));
  taken = result;
  return true;
}

bool SlowCalls::finish(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (poll(); !calls.empty(); poll()) {
    std::unique_lock lock(mutex);
    if (!changed.wait_until(lock, until, [&] { return done; })) return false;
  }
  return true;
}

void SlowCalls::setWake(std::function<void()> to) {
  std::lock_guard lock(mutex);
  wake = std::move(to);
}

void SlowCalls::run() {
  std::unique_lock lock(mutex);
  for (bool isFirst = true;; isFirst = false) {
    changed.wait(lock, [&] { return ending || given != nullptr; });
    if (ending) return;
    runGiven(lock, isFirst);
    changed.notify_all();
    if (wake) wake();
  }
}

// An exception of the work is stored, and thrown where the GPU's thread takes the result. The lock is held except during the work.
void SlowCalls::runGiven(std::unique_lock<std::mutex>& lock, bool isFirst) {
  const Work& work = *std::exchange(given, nullptr);
  lock.unlock();
  CUresult ofWork = CUDA_SUCCESS;
  auto caught = kj::runCatchingExceptions([&] {
    if (isFirst) begin();
    ofWork = work();
  });
  lock.lock();
  result = ofWork;
  failure = kj::mv(caught);
  done = true;
}

}  // namespace vgpu::stub
