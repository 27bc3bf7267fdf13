// The fast Walsh-Hadamard transform of integers, with long strides in global memory and short ones in shared memory. The reference is the
// definition by signs; and the transform applied twice must give the input times its length.
#include "bench.h"
#include "random-numbers.h"

constexpr int logCount = 12, count = 1 << logCount, block = 256, chunk = 2 * block;

__device__ void butterfly(int& a, int& b) {
  const int sum = a + b, difference = a - b;
  a = sum;
  b = difference;
}

// Index of the first element of the butterfly that `thread` computes at distance `stride`.
__device__ int firstOf(int thread, int stride) { return 2 * thread - (thread & (stride - 1)); }

__global__ void longStride(int* values, int stride) {
  const int i = firstOf(blockIdx.x * blockDim.x + threadIdx.x, stride);
  butterfly(values[i], values[i + stride]);
}

// All strides within a chunk.
__global__ void shortStrides(int* values) {
  __shared__ int shared[chunk];
  int* const mine = values + blockIdx.x * chunk;
  shared[threadIdx.x] = mine[threadIdx.x];
  shared[threadIdx.x + block] = mine[threadIdx.x + block];
  for (int stride = block; stride > 0; stride /= 2) {
    __syncthreads();
    const int i = firstOf(threadIdx.x, stride);
    butterfly(shared[i], shared[i + stride]);
  }
  __syncthreads();
  mine[threadIdx.x] = shared[threadIdx.x];
  mine[threadIdx.x + block] = shared[threadIdx.x + block];
}

void transform(int* values, int count) {
  for (int stride = count / 2; stride >= chunk; stride /= 2) longStride<<<count / chunk, block>>>(values, stride);
  shortStrides<<<count / chunk, block>>>(values);
  CHECK(cudaGetLastError());
}

// The SDK sample's eight million numbers.
int measure(const Bench& bench) {
  const int size = 1 << bench.size(23, logCount);
  const auto input = randomInts(size, -100, 100, 1);
  DeviceArray<int> values(size);
  std::vector<int> result(size);
  bench.steady(20, [&] {
    values.copyIn(input);
    transform(values, size);
    values.copyOut(result);
  });
  return bench.digest(result);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const auto input = randomInts(count, -100, 100, 1);
  DeviceArray<int> values(input);
  transform(values, count);
  const auto transformed = values.download();
  pausePoint();
  transform(values, count);

  std::vector<int> expected(count), expectedTwice(count);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) expected[i] += __builtin_parity(i & j) ? -input[j] : input[j];
    expectedTwice[i] = input[i] * count;
  }
  return verdict("walsh-transform",
                 same("transform", transformed, expected) & same("transform twice", values.download(), expectedTwice));
}
