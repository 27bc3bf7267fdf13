// Pinned memory that kernels use, and then none until after the pause: a program without any can migrate from its GPU's host. Memory that
// it pins afterwards works as before, whether or not it is shared with the GPU.
#include "program.h"

constexpr int elements = 100'000, rounds = 3;

__global__ void addFrom(int* values, const int* summands) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) values[i] += summands[i];
}

// Several rounds in which program and kernel write the same memory in turn, and it is copied both ways.
bool mappedMemoryWorks(int* onDevice) {
  int *values, *summands, *valuesThere, *summandsThere;
  CHECK(cudaHostAlloc(&values, elements * sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostAlloc(&summands, elements * sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&valuesThere, values, 0));
  CHECK(cudaHostGetDevicePointer(&summandsThere, summands, 0));
  std::vector<int> want(elements);
  for (int i = 0; i < elements; ++i) values[i] = want[i] = i;
  bool ok = true;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < elements; ++i) summands[i] = i % 7 + round;
    addFrom<<<blocksFor(elements, 256), 256>>>(valuesThere, summandsThere);
    CHECK(cudaMemcpyAsync(onDevice, values, elements * sizeof(int), cudaMemcpyHostToDevice));
    addFrom<<<blocksFor(elements, 256), 256>>>(onDevice, summandsThere);
    CHECK(cudaMemcpyAsync(values, onDevice, elements * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < elements; ++i) want[i] += 2 * (i % 7 + round);
    ok &= same("mapped memory", std::vector<int>(values, values + elements), want);
    for (int i = 0; i < elements; ++i) want[i] = values[i] = -values[i];
  }
  CHECK(cudaFreeHost(values));
  CHECK(cudaFreeHost(summands));
  return ok;
}

int main() {
  DeviceArray<int> onDevice(elements);
  bool ok = mappedMemoryWorks(onDevice);
  const std::vector<int> before = onDevice.download();
  pausePoint();
  ok &= same("device memory", onDevice.download(), before);
  ok &= mappedMemoryWorks(onDevice);
  return verdict("pinned-later", ok);
}
