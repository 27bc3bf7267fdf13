// Runs work on another thread and returns a promise to the requesting event loop; and the reverse.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <memory>
#include <mutex>
#include <optional>

namespace vgpu {

template <typename Result>
struct CrossThread {
  kj::Function<void()> job;     // runs on the other thread, once; does not throw
  kj::Promise<Result> result;   // for the calling thread's loop; rejects if the work throws. Dropping it does not stop the work
};

// `work` returns a value. The result is handed over under a lock of ours, in addition to KJ's own synchronization between threads, which
// thread sanitizer does not understand.
template <typename Work>
auto crossThread(Work work) -> CrossThread<decltype(work())> {
  using Result = decltype(work());
  struct Handed {
    std::mutex mutex;
    std::optional<Result> value;
  };
  auto handed = std::make_shared<Handed>();
  auto pair = kj::newPromiseAndCrossThreadFulfiller<void>();
  auto job = [work = kj::mv(work), handed, fulfiller = kj::mv(pair.fulfiller)]() mutable {
    fulfiller->rejectIfThrows([&] {
      Result value = work();
      std::unique_lock lock(handed->mutex);
      handed->value.emplace(kj::mv(value));
      lock.unlock();
      fulfiller->fulfill();
    });
  };
  return {kj::mv(job), pair.promise.then([handed] {
            std::lock_guard lock(handed->mutex);
            return Result(kj::mv(*handed->value));
          })};
}

// Runs `work` on the loop of `executor` and returns its result, or that of the promise that it returns, while the calling thread, another
// one, waits. Like Executor::executeSync(), but with a lock of ours for the same reason. `tests/tsan-suppressions.txt` refers to this
// function's name for what KJ itself reads of the result.
template <typename Work>
[[gnu::noinline]] auto callOn(const kj::Executor& executor, Work work) {
  std::mutex handing;
  auto handOver = [&handing] { std::lock_guard lock(handing); };
  handOver();
  KJ_DEFER(handOver());
  return executor.executeSync([&] {
    handOver();
    return kj::Promise<void>(kj::READY_NOW).then([&] { return work(); }).attach(kj::defer(handOver));
  });
}

// Destroys an object that belongs to the loop of `executor` on that loop, and waits for it. On any thread, including the loop's own.
template <typename T>
void destroyOn(const kj::Executor& executor, kj::Own<T> object) {
  std::mutex handing;
  auto handOver = [&handing] { std::lock_guard lock(handing); };
  handOver();
  executor.executeSync([&] {
    handOver();
    object = nullptr;
    handOver();
  });
  handOver();
}

}  // namespace vgpu
