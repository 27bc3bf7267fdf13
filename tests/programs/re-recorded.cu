// An event stands for its latest record, in whichever stream: an earlier record in a blocked stream, which the GPU reaches later, does not
// change it. Nor does the destruction of the stream in which it was recorded.
#include <atomic>
#include <thread>

#include "program.h"

struct Hold {
  std::atomic<bool> reached{false}, released{false};
};

void hold(void* data) {
  auto* held = static_cast<Hold*>(data);
  held->reached = true;
  while (!held->released) usleep(100);
}

__global__ void increment(int* value) { *value += 1; }

// Records `event` in `slow`, behind work that holds it, then in `fast`; checks it before and after `slow` has reached its record.
bool recordTwice(cudaEvent_t event, cudaStream_t slow, cudaStream_t fast, int* value) {
  Hold state;
  CHECK(cudaLaunchHostFunc(slow, hold, &state));
  increment<<<1, 1, 0, slow>>>(value);
  CHECK(cudaEventRecord(event, slow));
  while (!state.reached) usleep(100);
  bool ok = EXPECT_ERROR(cudaEventQuery(event), cudaErrorNotReady);
  CHECK(cudaEventRecord(event, fast));
  CHECK(cudaEventSynchronize(event));
  ok &= EXPECT_ERROR(cudaEventQuery(event), cudaSuccess);
  state.released = true;
  CHECK(cudaStreamSynchronize(slow));
  return ok & EXPECT_ERROR(cudaEventQuery(event), cudaSuccess);
}

// If two threads record an event at once in two streams, one record is the latest, and all of it happens.
bool recordByTwo(cudaEvent_t event, cudaStream_t one, cudaStream_t other) {
  auto record = [&](cudaStream_t stream) {
    for (int i = 0; i < 200; ++i) CHECK(cudaEventRecord(event, stream));
  };
  std::thread second(record, other);
  record(one);
  second.join();
  CHECK(cudaEventSynchronize(event));
  CHECK(cudaDeviceSynchronize());
  return EXPECT_ERROR(cudaEventQuery(event), cudaSuccess);
}

int main() {
  alarm(60);
  cudaStream_t slow, fast;
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&fast, cudaStreamNonBlocking));
  DeviceArray<int> value(std::vector<int>{0});
  loadKernel(increment);
  bool ok = recordTwice(event, slow, fast, value);
  ok &= recordTwice(event, slow, cudaStreamPerThread, value);
  ok &= recordByTwo(event, slow, fast);
  pausePoint();
  ok &= EXPECT_ERROR(cudaEventQuery(event), cudaSuccess);
  ok &= recordTwice(event, slow, fast, value);

  // Creating and destroying streams does not bring back the event's earlier state.
  CHECK(cudaStreamDestroy(fast));
  for (int i = 0; i < 10; ++i) {
    CHECK(cudaStreamCreateWithFlags(&fast, cudaStreamNonBlocking));
    ok &= EXPECT_ERROR(cudaEventQuery(event), cudaSuccess);
    ok &= recordTwice(event, slow, fast, value);
    CHECK(cudaStreamDestroy(fast));
  }
  ok &= EXPECT(value.download()[0] == 13);
  std::printf("re-recorded: %s\n", ok ? "ok" : "wrong");
  return ok ? 0 : 1;
}
