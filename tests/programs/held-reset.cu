// A reset of one device, after a fault, while a host function holds a stream of another device; only a later call of another
// thread lets go of it. With one device there is nothing to see.
#include <atomic>
#include <thread>

#include "program.h"

std::atomic<bool> reached, released;

void hold(void*) {
  reached = true;
  while (!released) usleep(100);
}

__global__ void storeAt(int* address, int value) { *address = value; }

int main() {
  alarm(60);
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return verdict("held-reset", true);

  cudaStream_t held, other;
  int* values;
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    loadKernel(storeAt);
  }
  CHECK(cudaMalloc(&values, 2 * sizeof(int)));
  CHECK(cudaStreamCreate(&held));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaLaunchHostFunc(held, hold, nullptr));
  storeAt<<<1, 1, 0, held>>>(values, 1);
  CHECK(cudaGetLastError());
  while (!reached) usleep(100);

  CHECK(cudaSetDevice(0));
  storeAt<<<1, 1>>>(reinterpret_cast<int*>(uintptr_t(0x7000000000000)), 1);
  bool ok = EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  CHECK(cudaSetDevice(1));
  std::thread resetting([&] {
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceReset());
  });
  usleep(20'000);
  storeAt<<<1, 1, 0, other>>>(values + 1, 2);
  CHECK(cudaStreamSynchronize(other));
  released = true;
  resetting.join();

  int seen[2];
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(seen, values, sizeof seen, cudaMemcpyDeviceToHost));
  ok &= EXPECT(seen[0] == 1 && seen[1] == 2);
  CHECK(cudaSetDevice(0));
  CHECK(cudaMalloc(&values, sizeof(int)));
  storeAt<<<1, 1>>>(values, 3);
  CHECK(cudaMemcpy(seen, values, sizeof(int), cudaMemcpyDeviceToHost));
  return verdict("held-reset", ok & EXPECT(seen[0] == 3));
}
