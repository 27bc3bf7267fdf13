// Eight host threads on one device, each with its own stream and data, and all of them also on the default stream. The first one stops at
// the pause point while the others keep calling, so a suspend must stop them all.
#include "program.h"

#include <thread>

constexpr int threads = 8, count = 4096, block = 128, roundsAtLeast = 40, roundsAtMost = 1000000;

__global__ void addOne(int* values) { values[blockIdx.x * block + threadIdx.x] += 1; }
__global__ void addAtomically(int* value) { atomicAdd(value, 1); }

std::atomic<bool> paused{false};  // set when the first thread has passed the pause point

// A thread's error is not visible to other threads, and reading it clears it.
bool errorsAreOwn(int thread) {
  if (thread % 2) return EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
  const bool refused = EXPECT_ERROR(cudaMemset(nullptr, 0, 16), cudaErrorInvalidValue);
  std::this_thread::yield();
  return refused & EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidValue) &
         EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue) & EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
}

// Counts in `own` in its own stream and in `shared` in the default stream; adds its rounds to `total`.
void work(int thread, int* shared, std::atomic<int>& total, std::atomic<bool>& ok) {
  CHECK(cudaSetDevice(0));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<int> values(count, thread), want(count);
  {
    DeviceArray<int> own(values);
    int round = 0;
    for (; round < roundsAtLeast || (!paused && round < roundsAtMost); ++round) {
      if (thread == 0 && round == roundsAtLeast / 2) {
        pausePoint();
        paused = true;
      }
      addOne<<<count / block, block, 0, stream>>>(own);
      addAtomically<<<1, 1>>>(shared);
      CHECK(cudaGetLastError());
      if (round % 8 == thread) CHECK(cudaStreamSynchronize(stream));
      if (!errorsAreOwn(thread)) ok = false;
    }
    CHECK(cudaMemcpyAsync(values.data(), own, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    want.assign(count, thread + round);
    if (!same("own values", values, want)) ok = false;
    total += round;
  }
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  DeviceArray<int> shared(std::vector<int>{0});
  std::atomic<int> total{0};
  std::atomic<bool> ok{true};
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back(work, thread, static_cast<int*>(shared), std::ref(total), std::ref(ok));
  }
  for (std::thread& thread : running) thread.join();
  const bool counted = same("launches on the default stream", shared.download(), {total.load()});
  return verdict("threads", counted & ok);
}
