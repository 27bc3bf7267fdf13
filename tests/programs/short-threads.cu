// Ten thousand threads, each with work in its own default stream, which end before their work does. The work is still done, and nothing of
// the threads remains: control/short-threads checks for their streams.
#include <thread>

#include "program.h"

constexpr int threads = 10000, atOnce = 4;

__global__ void add(int* sum, int number) { atomicAdd(sum, number); }

int main() {
  DeviceArray<int> sum(std::vector<int>{0});
  std::atomic<bool> ok{true};
  int next = 0;
  while (next < threads) {
    std::vector<std::thread> running;
    for (int i = 0; i < atOnce; ++i, ++next)
      running.emplace_back([&sum, &ok, number = next % 7] {
        add<<<1, 1, 0, cudaStreamPerThread>>>(sum, number);
        if (cudaGetLastError() != cudaSuccess) ok = false;
      });
    for (auto& thread : running) thread.join();
  }
  int expected = 0;
  for (int i = 0; i < threads; ++i) expected += i % 7;
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  return verdict("short-threads", ok & same("sum", sum.download(), {expected}));
}
