// Sorts with a bitonic network: steps with a short distance run together in shared memory, each one with a long distance as its own launch.
// The pause is between two steps, when the data is neither the input nor the result.
#include "bench.h"

#include <algorithm>
#include <random>

constexpr int block = 512;
constexpr int chunk = 2 * block;  // the keys that a block holds in shared memory

// Orders the two keys: the smaller one first if `ascending`.
__device__ void compareExchange(unsigned& a, unsigned& b, bool ascending) {
  if ((a > b) == ascending) {
    const unsigned kept = a;
    a = b;
    b = kept;
  }
}

// Index of the first of the two keys that `thread` compares at distance `stride`.
__device__ int firstOf(int thread, int stride) { return 2 * thread - (thread & (stride - 1)); }

// All steps of stages `from` to `to` whose distance is within a chunk.
__global__ void sortChunks(unsigned* keys, int from, int to) {
  __shared__ unsigned shared[chunk];
  const int base = blockIdx.x * chunk;
  shared[threadIdx.x] = keys[base + threadIdx.x];
  shared[threadIdx.x + block] = keys[base + threadIdx.x + block];
  for (int stage = from; stage <= to; stage *= 2) {
    for (int stride = min(stage / 2, block); stride > 0; stride /= 2) {
      __syncthreads();
      const int i = firstOf(threadIdx.x, stride);
      compareExchange(shared[i], shared[i + stride], ((base + i) & stage) == 0);
    }
  }
  __syncthreads();
  keys[base + threadIdx.x] = shared[threadIdx.x];
  keys[base + threadIdx.x + block] = shared[threadIdx.x + block];
}

__global__ void mergeStep(unsigned* keys, int stage, int stride) {
  const int i = firstOf(blockIdx.x * blockDim.x + threadIdx.x, stride);
  compareExchange(keys[i], keys[i + stride], (i & stage) == 0);
}

// Calls `amidst` between two steps near the end.
template <typename Amidst>
void sort(unsigned* keys, int count, Amidst amidst) {
  sortChunks<<<count / chunk, block>>>(keys, 2, chunk);
  for (int stage = 2 * chunk; stage <= count; stage *= 2) {
    for (int stride = stage / 2; stride >= chunk; stride /= 2) {
      mergeStep<<<count / chunk, block>>>(keys, stage, stride);
      if (stage == count && stride == stage / 4) amidst();
    }
    sortChunks<<<count / chunk, block>>>(keys, stage, stage);
  }
  CHECK(cudaGetLastError());
}

std::vector<unsigned> randomKeys(int count) {
  std::mt19937 generator(7);
  std::vector<unsigned> keys(count);
  for (unsigned& key : keys) key = generator();
  return keys;
}

// The SDK sample's million keys.
int measure(const Bench& bench) {
  const auto keys = randomKeys(bench.size(1024, 4) * chunk);
  DeviceArray<unsigned> device(keys.size());
  auto sorted = keys;
  bench.steady(60, [&] {
    device.copyIn(keys);
    sort(device, keys.size(), [] {});
    device.copyOut(sorted);
  });
  return bench.digest(sorted);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const int count = 16 * chunk;
  auto keys = randomKeys(count);
  DeviceArray<unsigned> device(keys);

  sort(device, count, pausePoint);
  std::sort(keys.begin(), keys.end());
  return verdict("sort-bitonic", same("keys", device.download(), keys));
}
