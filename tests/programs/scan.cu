// The exclusive prefix sums of an array of hundreds of blocks: every block scans its chunk up and down a tree in shared memory, the chunks'
// sums are scanned in the same way, and added at the end.
#include "bench.h"
#include "random-numbers.h"

constexpr int block = 256, chunk = 2 * block;

// Replaces shared[0..chunk) by its exclusive prefix sums, and returns the total to every thread.
__device__ unsigned scanChunk(unsigned* shared) {
  for (int stride = 1; stride < chunk; stride *= 2) {
    __syncthreads();
    const int end = (threadIdx.x + 1) * 2 * stride - 1;
    if (end < chunk) shared[end] += shared[end - stride];
  }
  __syncthreads();
  const unsigned total = shared[chunk - 1];
  __syncthreads();
  if (threadIdx.x == 0) shared[chunk - 1] = 0;
  for (int stride = chunk / 2; stride > 0; stride /= 2) {
    __syncthreads();
    const int end = (threadIdx.x + 1) * 2 * stride - 1;
    if (end >= chunk) continue;
    const unsigned left = shared[end - stride];
    shared[end - stride] = shared[end];
    shared[end] += left;
  }
  __syncthreads();
  return total;
}

__global__ void scanChunks(const unsigned* values, unsigned* sums, unsigned* totals, int count) {
  __shared__ unsigned shared[chunk];
  const int first = blockIdx.x * chunk + threadIdx.x, second = first + block;
  shared[threadIdx.x] = first < count ? values[first] : 0;
  shared[threadIdx.x + block] = second < count ? values[second] : 0;
  const unsigned total = scanChunk(shared);
  if (first < count) sums[first] = shared[threadIdx.x];
  if (second < count) sums[second] = shared[threadIdx.x + block];
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

__global__ void addOffsets(unsigned* sums, const unsigned* offsets, int count) {
  const int i = blockIdx.x * chunk + threadIdx.x;
  if (i < count) sums[i] += offsets[blockIdx.x];
}

// Adds the scanned chunk sums to each chunk.
void addTotals(unsigned* sums, const unsigned* totals, unsigned* offsets, unsigned* total, int count) {
  const int chunks = blocksFor(count, chunk);
  scanChunks<<<1, block>>>(totals, offsets, total, chunks);
  addOffsets<<<chunks, chunk>>>(sums, offsets, count);
  CHECK(cudaGetLastError());
}

// Several arrays of the largest size, together with as many numbers as in the SDK sample.
int measure(const Bench& bench) {
  const int count = bench.size(chunk, 8) * chunk, arrays = bench.size(25, 2), chunks = count / chunk;
  const auto drawn = randomInts(count * arrays, 0, 1 << 30, 1);
  const std::vector<unsigned> input(drawn.begin(), drawn.end());
  std::vector<unsigned> result(input.size());
  DeviceArray<unsigned> values(input.size()), sums(input.size()), totals(chunks), offsets(chunks), total(1);
  bench.steady(20, [&] {
    values.copyIn(input);
    for (size_t first = 0; first < input.size(); first += count) {
      scanChunks<<<chunks, block>>>(values + first, sums + first, totals, count);
      addTotals(sums + first, totals, offsets, total, count);
    }
    sums.copyOut(result);
  });
  return bench.digest(result);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const int count = 200003, chunks = blocksFor(count, chunk);
  const auto drawn = randomInts(count, 0, 1 << 30, 1);  // the sums wrap around, as unsigned ones may
  const std::vector<unsigned> input(drawn.begin(), drawn.end());
  DeviceArray<unsigned> values(input), sums(count), totals(chunks), offsets(chunks), total(1);

  scanChunks<<<chunks, block>>>(values, sums, totals, count);
  CHECK(cudaGetLastError());
  pausePoint();
  if (!EXPECT(chunks <= chunk)) return 1;
  addTotals(sums, totals, offsets, total, count);

  std::vector<unsigned> expected(count);
  unsigned sum = 0;
  for (int i = 0; i < count; ++i) {
    expected[i] = sum;
    sum += input[i];
  }
  return verdict("scan", same("prefix sums", sums.download(), expected) &
                             same("total", total.download(), std::vector<unsigned>{sum}));
}
