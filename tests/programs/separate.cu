// Relocatable device code: a kernel of one file calls a function of another (nvcc -rdc=true).
#include "random-numbers.h"
#include "separate.h"

#include "program.h"

__device__ int applied;
__constant__ int factor = 2;

__device__ int scaled(int value) { return value * factor + 1; }

int main() {
  const int count = 1000, newFactor = 5;
  std::vector<int> values = randomInts(count, -100, 100, 3), expected = values;
  DeviceArray<int> onDevice(values);
  apply<<<blocksFor(count, 128), 128>>>(onDevice, count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpyToSymbol(factor, &newFactor, sizeof newFactor));

  pausePoint();

  apply<<<blocksFor(count, 128), 128>>>(onDevice, count);
  CHECK(cudaDeviceSynchronize());
  for (int& value : expected) value = (value * 2 + 1) * newFactor + 1;
  int times = 0;
  CHECK(cudaMemcpyFromSymbol(&times, applied, sizeof times));
  return verdict("separate", same("values", onDevice.download(), expected) & EXPECT(times == 2 * count));
}
