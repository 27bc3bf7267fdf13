// Sorts by a bitonic network: steps with a short reach run together in shared memory, those with a long one each as a
// launch of their own. The pause comes between two steps, when the data is neither the input nor the result.
#include "program.h"

#include <algorithm>

constexpr int block = 512;
constexpr int chunk = 2 * block;  // what one block holds in shared memory

// Orders the two keys so that the smaller comes first where `ascending`.
__device__ void compareExchange(unsigned& a, unsigned& b, bool ascending) {
  if ((a > b) == ascending) {
    const unsigned kept = a;
    a = b;
    b = kept;
  }
}

// Place of the first of the two keys that `thread` compares at distance `stride`.
__device__ int firstOf(int thread, int stride) { return 2 * thread - (thread & (stride - 1)); }

// Every step of stages `from` to `to` whose reach is within a chunk.
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

int main() {
  const int count = 16 * chunk;
  std::mt19937 generator(7);
  std::vector<unsigned> keys(count);
  for (unsigned& key : keys) key = generator();
  DeviceArray<unsigned> device(keys);

  sortChunks<<<count / chunk, block>>>(device, 2, chunk);
  for (int stage = 2 * chunk; stage <= count; stage *= 2) {
    for (int stride = stage / 2; stride >= chunk; stride /= 2) {
      mergeStep<<<count / chunk, block>>>(device, stage, stride);
      if (stage == count && stride == stage / 4) pausePoint();
    }
    sortChunks<<<count / chunk, block>>>(device, stage, stage);
  }
  CHECK(cudaGetLastError());

  std::sort(keys.begin(), keys.end());
  return verdict("sort-bitonic", same("keys", device.download(), keys));
}
