// The library that dlopen-host loads: its fatbinary, its functions and its variable are registered late.
#include "program.h"
#include "random-numbers.h"

__device__ int bias = 5;

__global__ void addBias(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += bias;
}

extern "C" int runPlugin() {
  const int count = 1000;
  const auto input = randomInts(count, -100, 100, 1);
  DeviceArray<int> values(input);
  addBias<<<blocksFor(count, 128), 128>>>(values, count);
  CHECK(cudaGetLastError());
  pausePoint();
  const int newBias = 37;
  CHECK(cudaMemcpyToSymbol(bias, &newBias, sizeof newBias));
  addBias<<<blocksFor(count, 128), 128>>>(values, count);
  CHECK(cudaGetLastError());

  auto expected = input;
  for (int& value : expected) value += 5 + newBias;
  return verdict("dlopen-host", same("values", values.download(), expected));
}
