// More threads than a session has slots for replies: 600 that make calls, then 600 that wait at once for GPU work that only calls of the
// main thread complete.

#include <condition_variable>
#include <mutex>
#include <thread>

#include "await-flag.h"
#include "program.h"

constexpr int threads = 600;

__global__ void add(int* value, int number) { atomicAdd(value, number); }

namespace {

// Releases its threads when all have arrived.
class Barrier {
 public:
  explicit Barrier(int count) : missing(count) {}
  void arrive() {
    std::unique_lock lock(mutex);
    if (--missing == 0) changed.notify_all();
    changed.wait(lock, [&] { return missing <= 0; });
  }

 private:
  std::mutex mutex;
  std::condition_variable changed;
  int missing;
};

template <typename Body>
bool onEachThread(Body body) {
  std::atomic<bool> ok{true};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      if (!body(i)) ok = false;
    });
  for (auto& thread : running) thread.join();
  return ok;
}

// All threads alive at once, each with calls that the worker completes, that the GPU completes, and that need no reply.
bool allLive(int* sum) {
  Barrier all(threads), still(threads);
  return onEachThread([&](int i) {
    int seen = -1;
    size_t free, total;
    add<<<1, 1>>>(sum, i);
    bool ok = EXPECT_ERROR(cudaGetLastError(), cudaSuccess) & EXPECT_ERROR(cudaMemGetInfo(&free, &total), cudaSuccess);
    all.arrive();
    ok &= EXPECT_ERROR(cudaMemcpy(&seen, sum, sizeof seen, cudaMemcpyDeviceToHost), cudaSuccess) &
          EXPECT(seen == threads * (threads - 1) / 2);
    still.arrive();
    return ok;
  });
}

// A third of them waits for a stream, a third for an event, a third for a small copy; the stream waits until the main thread has made calls
// of every kind.
bool allWait(int* sum) {
  std::atomic<bool> released{false};
  std::atomic<int> waiting{0};
  cudaStream_t held, other;
  cudaEvent_t event;
  CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaLaunchHostFunc(held, awaitFlag, &released));
  add<<<1, 1, 0, held>>>(sum, 1);
  CHECK(cudaEventRecord(event, held));

  std::thread releaser([&] {
    while (waiting < threads) usleep(1000);
    usleep(50000);  // until most of them wait
    int *made, seen = 0;
    CHECK(cudaMalloc(&made, 64 << 20));
    CHECK(cudaMemsetAsync(made, 0x22, sizeof(int), other));
    CHECK(cudaStreamSynchronize(other));
    CHECK(cudaMemcpyAsync(&seen, made, sizeof seen, cudaMemcpyDeviceToHost, other));
    if (seen != 0x22222222) std::exit(1);
    released = true;
    CHECK(cudaFree(made));
  });
  const int before = threads * (threads - 1) / 2;
  const bool ok = onEachThread([&](int i) {
    int seen = -1;
    ++waiting;
    if (i % 3 == 0) return EXPECT_ERROR(cudaStreamSynchronize(held), cudaSuccess);
    if (i % 3 == 1) return EXPECT_ERROR(cudaEventSynchronize(event), cudaSuccess);
    return EXPECT_ERROR(cudaMemcpyAsync(&seen, sum, sizeof seen, cudaMemcpyDeviceToHost, held), cudaSuccess) &&
           EXPECT(seen == before + 1);
  });
  releaser.join();
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(held));
  CHECK(cudaStreamDestroy(other));
  return ok;
}

}  // namespace

int main() {
  alarm(300);  // the error under test is that they wait for ever
  DeviceArray<int> sum(std::vector<int>{0});
  const bool live = allLive(sum);
  pausePoint();
  return verdict("many-threads", live & allWait(sum));
}
