// One thread waits for a stream that a host function blocks; only a later call of another thread ends that wait. Kernels that print must
// not change this.
#include <atomic>
#include <thread>

#include "program.h"

__global__ void greet(int from, int* greeted) {
  printf("greeted %d\n", from);
  atomicAdd(greeted, 1);
}

struct Hold {
  std::atomic<bool> reached{false}, released{false};
};

void hold(void* data) {
  auto* held = static_cast<Hold*>(data);
  held->reached = true;
  while (!held->released) usleep(100);
}

// While a separate thread is in `wait`, the program's main thread has work done, and only then releases the stream.
template <typename Wait>
void waitWhileHeld(cudaStream_t held, cudaStream_t other, int* greeted, Wait wait) {
  Hold state;
  CHECK(cudaLaunchHostFunc(held, hold, &state));
  greet<<<1, 1, 0, held>>>(1, greeted);
  CHECK(cudaGetLastError());
  while (!state.reached) usleep(100);
  std::thread waiter(wait);
  usleep(20'000);  // it should be in its wait by now; the result does not depend on it
  greet<<<1, 1, 0, other>>>(2, greeted);
  CHECK(cudaStreamSynchronize(other));
  state.released = true;
  waiter.join();
}

int main() {
  alarm(60);
  cudaStream_t held, other;
  cudaEvent_t after;
  CHECK(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
  DeviceArray<int> greeted(std::vector<int>{0});
  int expected = 0;
  for (unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking}) {
    // The driver waits for all work when a kernel that needs a stack is first launched, and after a pause this may be another process's
    // driver.
    greet<<<1, 1>>>(0, greeted);
    CHECK(cudaDeviceSynchronize());
    expected += 1;
    CHECK(cudaStreamCreateWithFlags(&held, flags));
    CHECK(cudaStreamCreateWithFlags(&other, flags));
    waitWhileHeld(held, other, greeted, [&] { CHECK(cudaStreamSynchronize(held)); });
    waitWhileHeld(held, other, greeted, [&] { CHECK(cudaDeviceSynchronize()); });
    waitWhileHeld(held, other, greeted, [&] {
      CHECK(cudaEventRecord(after, held));
      CHECK(cudaEventSynchronize(after));
    });
    expected += 6;
    if (flags == cudaStreamDefault) pausePoint();
    CHECK(cudaStreamDestroy(held));
    CHECK(cudaStreamDestroy(other));
  }

  // A wait for the device includes the work of a destroyed stream.
  Hold state;
  CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  CHECK(cudaLaunchHostFunc(held, hold, &state));
  greet<<<1, 1, 0, held>>>(3, greeted);
  CHECK(cudaStreamDestroy(held));
  std::thread releaser([&] {
    usleep(20'000);
    state.released = true;
  });
  CHECK(cudaDeviceSynchronize());
  bool waited = state.released;
  releaser.join();
  return verdict("held-waits", EXPECT(waited) & same("greetings", greeted.download(), {expected + 1}));
}
