// Work for another thread, and the promise of its result for the event loop that asked for it; and the other way round.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <memory>
#include <mutex>
#include <optional>

namespace vgpu {

template <typename Result>
struct CrossThread {
  kj::Function<void()> job;     // for the other thread, once; does not throw
  kj::Promise<Result> result;   // of the calling thread's loop; rejects if the work throws. Dropping it does not stop the work
};

// `work` returns a value. Its result goes over under a lock of ours, besides the one that KJ uses between threads, because thread
// sanitizer does not see that one.
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

// What `work` returns, or the promise that it returns becomes, on the loop of `executor`, while the calling thread, another one,
// waits. As Executor::executeSync(), under a lock of ours for the same reason; by its name `tests/tsan-suppressions.txt` knows
// what KJ itself reads of the result.
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

// Destroys what belongs to the loop of `executor` there and waits for it, on any thread, the loop's own too.
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
