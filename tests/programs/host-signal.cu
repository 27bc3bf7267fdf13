// A kernel that runs until the host writes a word of mapped memory: queries return "not ready" while it runs, the host is not blocked, and
// each side sees the other's writes.
#include "program.h"

struct Signals {
  volatile int started, release, seen;
};

__global__ void waitForHost(Signals* signals) {
  signals->started = 1;
  while (!signals->release) __nanosleep(1000);
  __threadfence_system();
  signals->seen = signals->release;
}

int main() {
  Signals *signals, *onDevice;
  cudaStream_t waiting, free;
  cudaEvent_t after;
  CHECK(cudaHostAlloc(&signals, sizeof(Signals), cudaHostAllocMapped));
  *signals = Signals{};
  CHECK(cudaHostGetDevicePointer(&onDevice, signals, 0));
  CHECK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
  DeviceArray<int> value(1);

  waitForHost<<<1, 1, 0, waiting>>>(onDevice);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(after, waiting));
  while (!signals->started) usleep(100);
  bool ok = EXPECT_ERROR(cudaStreamQuery(waiting), cudaErrorNotReady) &
            EXPECT_ERROR(cudaEventQuery(after), cudaErrorNotReady) &
            EXPECT_ERROR(cudaGetLastError(), cudaSuccess);  // "not ready" does not become the thread's last error

  CHECK(cudaMemsetAsync(value, 0x11, sizeof(int), free));  // the other stream continues meanwhile
  CHECK(cudaStreamSynchronize(free));
  ok &= EXPECT(signals->seen == 0);
  signals->release = 77;
  CHECK(cudaEventSynchronize(after));
  ok &= EXPECT(signals->seen == 77) & EXPECT_ERROR(cudaStreamQuery(waiting), cudaSuccess) &
        same("memory set meanwhile", value.download(), std::vector<int>{0x11111111});

  CHECK(cudaEventDestroy(after));
  CHECK(cudaStreamDestroy(waiting));
  CHECK(cudaStreamDestroy(free));
  CHECK(cudaFreeHost(signals));
  return verdict("host-signal", ok);
}
