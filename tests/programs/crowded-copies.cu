// More host threads than staging memory allows, all copying results to pageable memory at once, each in several pieces. A thread must not
// wait for slabs while it holds slabs that others wait for.
#include "program.h"

#include <thread>

constexpr int threads = 40, rounds = 12, count = 5 << 18;  // 5 MiB per thread: ten pieces

__global__ void fill(int* values, int first) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) values[i] = first + i;
}

// Reads `values` repeatedly; one thread pauses while the others read.
void readOften(int thread, const DeviceArray<int>& values, int first, std::atomic<bool>& ok) {
  CHECK(cudaSetDevice(0));
  std::vector<int> read(count);
  for (int round = 0; round < rounds; ++round) {
    if (thread == 0 && round == rounds / 2) pausePoint();
    std::fill(read.begin(), read.end(), -1);
    values.copyOut(read);
    for (int i = 0; i < count; ++i)
      if (read[i] != first + i) ok = false;
  }
}

int main() {
  const int first = 1000;
  DeviceArray<int> values(count);
  fill<<<8, 128>>>(values, first);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  std::atomic<bool> ok{true};
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread)
    running.emplace_back(readOften, thread, std::cref(values), first, std::ref(ok));
  for (std::thread& thread : running) thread.join();
  return verdict("crowded-copies", ok);
}
