// Counts how often each byte occurs: each warp of a block counts in its own shared memory with atomics, and the block adds the counts to
// the total. Half of the data is one value, so that many threads contend for one counter.
#include "program.h"
#include "random-numbers.h"

constexpr int bins = 256, block = 192, warps = block / 32, blocks = 24;

__global__ void count(const unsigned char* data, int size, unsigned* histogram) {
  __shared__ unsigned ofWarp[warps][bins];
  unsigned* const mine = ofWarp[threadIdx.x / 32];
  for (int bin = threadIdx.x; bin < bins * warps; bin += block) ofWarp[bin / bins][bin % bins] = 0;
  __syncthreads();
  for (int i = blockIdx.x * block + threadIdx.x; i < size; i += gridDim.x * block) atomicAdd(&mine[data[i]], 1);
  __syncthreads();
  for (int bin = threadIdx.x; bin < bins; bin += block) {
    unsigned sum = 0;
    for (int warp = 0; warp < warps; ++warp) sum += ofWarp[warp][bin];
    atomicAdd(&histogram[bin], sum);
  }
}

int main() {
  const int size = 1000001, half = size / 2;
  const auto drawn = randomInts(size, -256, 255, 1);
  std::vector<unsigned char> data(size);
  for (int i = 0; i < size; ++i) data[i] = drawn[i] < 0 ? 42 : drawn[i];
  DeviceArray<unsigned char> device(data);
  DeviceArray<unsigned> histogram(bins);
  CHECK(cudaMemset(histogram, 0, bins * sizeof(unsigned)));

  count<<<blocks, block>>>(device, half, histogram);
  CHECK(cudaGetLastError());
  pausePoint();
  count<<<blocks, block>>>(device + half, size - half, histogram);
  CHECK(cudaGetLastError());

  std::vector<unsigned> expected(bins);
  for (unsigned char byte : data) ++expected[byte];
  return verdict("histogram", same("bins", histogram.download(), expected));
}
