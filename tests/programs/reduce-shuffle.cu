// Sum, maximum, prefix sums and count of a million numbers with warp shuffles and votes; warps are combined in shared memory, blocks in a
// second launch.
#include "program.h"
#include "random-numbers.h"

#include <algorithm>
#include <climits>

constexpr int block = 256, warps = block / 32;
constexpr unsigned allLanes = 0xffffffff;

struct Summary {
  long long sum;
  int maximum, odd;
};

__device__ Summary mergeSummaries(Summary a, Summary b) {
  return {a.sum + b.sum, max(a.maximum, b.maximum), a.odd + b.odd};
}

__device__ Summary reduceWarp(Summary mine) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const Summary other{__shfl_down_sync(allLanes, mine.sum, distance),
                        __shfl_xor_sync(allLanes, mine.maximum, distance),
                        __shfl_down_sync(allLanes, mine.odd, distance)};
    mine = mergeSummaries(mine, other);
  }
  return mine;
}

// The block's summary, valid in its first thread.
__device__ Summary reduceBlock(Summary mine) {
  __shared__ Summary ofWarp[warps];
  mine = reduceWarp(mine);
  if (threadIdx.x % 32 == 0) ofWarp[threadIdx.x / 32] = mine;
  __syncthreads();
  const Summary none{0, INT_MIN, 0};
  return threadIdx.x < 32 ? reduceWarp(threadIdx.x < warps ? ofWarp[threadIdx.x] : none) : none;
}

__global__ void summarize(const int* values, int count, Summary* ofBlock) {
  Summary mine{0, INT_MIN, 0};
  for (int start = blockIdx.x * block; start < count; start += gridDim.x * block) {
    const int i = start + threadIdx.x;
    const int value = i < count ? values[i] : INT_MIN;
    // The vote counts for the whole warp, so only its first lane uses the result.
    const int odd = __popc(__ballot_sync(allLanes, i < count && (value & 1)));
    mine = mergeSummaries(mine, {i < count ? value : 0, value, threadIdx.x % 32 == 0 ? odd : 0});
  }
  mine = reduceBlock(mine);
  if (threadIdx.x == 0) ofBlock[blockIdx.x] = mine;
}

__global__ void combine(const Summary* ofBlock, int count, Summary* total) {
  const Summary none{0, INT_MIN, 0};
  const Summary mine = reduceBlock(threadIdx.x < count ? ofBlock[threadIdx.x] : none);
  if (threadIdx.x == 0) *total = mine;
}

// The prefix sums within each warp.
__global__ void scanWarps(const int* values, int* sums) {
  const int i = blockIdx.x * block + threadIdx.x, lane = threadIdx.x % 32;
  int sum = values[i];
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(allLanes, sum, distance);
    if (lane >= distance) sum += other;
  }
  sums[i] = sum;
}

int main() {
  const int count = 1000003, blocks = 96, scanned = 64 * block;
  const auto values = randomInts(count, -1000000, 1000000, 5);
  DeviceArray<int> device(values), sums(scanned);
  DeviceArray<Summary> ofBlock(blocks), total(1);

  summarize<<<blocks, block>>>(device, count, ofBlock);
  scanWarps<<<scanned / block, block>>>(device, sums);
  CHECK(cudaGetLastError());
  pausePoint();
  combine<<<1, block>>>(ofBlock, blocks, total);
  CHECK(cudaGetLastError());

  Summary expected{0, INT_MIN, 0};
  for (int value : values) {
    expected.sum += value;
    expected.maximum = std::max(expected.maximum, value);
    expected.odd += value & 1;
  }
  std::vector<int> expectedSums(values.begin(), values.begin() + scanned);
  for (int i = 0; i < scanned; ++i) {
    if (i % 32 != 0) expectedSums[i] += expectedSums[i - 1];
  }
  const Summary got = total.download()[0];
  const bool ok = EXPECT(got.sum == expected.sum) & EXPECT(got.maximum == expected.maximum) &
                  EXPECT(got.odd == expected.odd) & same("running sums", sums.download(), expectedSums);
  return verdict("reduce-shuffle", ok);
}
