// Kernels that use the toolkit's header libraries: atomics, barriers, pipelines and semaphores of libcu++, variants and complex numbers of
// cuda::std, cuRAND's generators, block-wide sorts and scans of CUB, and device-wide ones of Thrust.
#include "program.h"

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/complex>
#include <cuda/std/variant>
#include <curand_kernel.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

#include <algorithm>
#include <map>
#include <numeric>

#pragma nv_diag_suppress static_var_with_dynamic_init  // barriers in shared memory: init() initializes them

constexpr int blockSize = 128;

std::vector<int> mixedValues(int count, int below) {
  std::vector<int> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<int>((i * 2654435761u >> 7) % below);
  return values;
}

// All threads change the cells concurrently. For types of 1 and 2 bytes, the 4-byte word of the last cell exceeds the allocation.
template <typename T>
__global__ void countTogether(T* sum, T* most, T* steps, T* last) {
  const T value = static_cast<T>(threadIdx.x % 5);
  cuda::atomic_ref<T, cuda::thread_scope_device>(*sum).fetch_add(value, cuda::memory_order_relaxed);
  cuda::atomic_ref<T, cuda::thread_scope_device>(*most).fetch_max(value);
  cuda::atomic_ref<T, cuda::thread_scope_system>(*last).exchange(static_cast<T>(9));
  cuda::atomic_ref<T, cuda::thread_scope_device> counter(*steps);
  T seen = counter.load(cuda::memory_order_acquire);
  while (!counter.compare_exchange_weak(seen, static_cast<T>(seen + 1), cuda::memory_order_acq_rel)) {
  }
}
template <typename T>
bool countsAreRight() {
  DeviceArray<T> cells(std::vector<T>(5));
  countTogether<T><<<2, 50>>>(cells, cells + 1, cells + 2, cells + 4);
  CHECK(cudaGetLastError());
  return same("counts", cells.download(), {static_cast<T>(200), static_cast<T>(4), static_cast<T>(100), 0, static_cast<T>(9)});
}

// Copies rows of `in` to shared memory while it adds up earlier ones: double buffering with barriers, and a pipeline.
struct Rows {
  const int* in;
  int count;
};
__global__ void addByBarriers(Rows rows, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> ready[2];
  __shared__ int buffer[2][blockSize];
  const auto block = cooperative_groups::this_thread_block();
  if (threadIdx.x < 2) init(&ready[threadIdx.x], blockSize);
  block.sync();
  const auto fetch = [&](int row) {
    const cuda::aligned_size_t<16> bytes(sizeof buffer[0]);
    cuda::memcpy_async(block, buffer[row % 2], rows.in + row * blockSize, bytes, ready[row % 2]);
  };
  fetch(0);
  int sum = 0;
  for (int row = 0; row < rows.count; ++row) {
    if (row + 1 < rows.count) fetch(row + 1);
    ready[row % 2].arrive_and_wait();
    sum += buffer[row % 2][(threadIdx.x + 1) % blockSize];
    block.sync();
  }
  out[threadIdx.x] = sum;
}
__global__ void addByPipeline(Rows rows, int* out) {
  constexpr int stages = 3;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  __shared__ int buffer[stages][blockSize];
  const auto block = cooperative_groups::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int sum = 0, fetched = 0;
  for (int row = 0; row < rows.count; ++row) {
    for (; fetched < rows.count && fetched < row + stages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, buffer[fetched % stages], rows.in + fetched * blockSize, sizeof buffer[0], pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += buffer[row % stages][(threadIdx.x + 1) % blockSize];
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}
bool rowsAreAdded() {
  const int rows = 7;
  const std::vector<int> in = mixedValues(rows * blockSize, 1000);
  std::vector<int> wanted(blockSize);
  for (int i = 0; i < rows * blockSize; ++i) wanted[(i + blockSize - 1) % blockSize] += in[i];
  DeviceArray<int> from(in), byBarriers(blockSize), byPipeline(blockSize);
  addByBarriers<<<1, blockSize>>>({from, rows}, byBarriers);
  addByPipeline<<<1, blockSize>>>({from, rows}, byPipeline);
  CHECK(cudaGetLastError());
  return same("rows by barriers", byBarriers.download(), wanted) & same("rows by a pipeline", byPipeline.download(), wanted);
}

// Blocks change a number one at a time, guarded by a semaphore, without atomics; then they take turns in the order of their indices.
__device__ cuda::binary_semaphore<cuda::thread_scope_device> gate{1};
__device__ cuda::atomic<int, cuda::thread_scope_device> turn{0};
__global__ void oneAtATime(volatile int* number, int* order) {
  for (int i = 0; i < 10; ++i) {
    gate.acquire();
    *number = *number + 1;
    gate.release();
  }
  const int mine = static_cast<int>(blockIdx.x);
  for (int now = turn.load(); now != mine; now = turn.load()) turn.wait(now);
  order[mine] = turn.fetch_add(1);
  turn.notify_all();
}
bool turnsAreRight() {
  const int blocks = 4;
  DeviceArray<int> number(std::vector<int>(1)), order(blocks);
  oneAtATime<<<blocks, 1>>>(number, order);
  CHECK(cudaGetLastError());
  return same("a number", number.download(), {10 * blocks}) & same("turns", order.download(), {0, 1, 2, 3});
}

// Computes the same on the device and on the host.
using Choice = cuda::std::variant<int, double, cuda::std::complex<double>>;
struct Size {
  __host__ __device__ double operator()(int whole) const { return whole < 0 ? -whole : whole; }
  __host__ __device__ double operator()(double number) const { return number * number; }
  __host__ __device__ double operator()(const cuda::std::complex<double>& number) const { return cuda::std::norm(number); }
};
__host__ __device__ double sizeOfChoice(int i) {
  Choice choice = -i;
  if (i % 3 == 1) choice = i * 0.5;
  if (i % 3 == 2) choice = cuda::std::complex<double>(i, 2) * cuda::std::complex<double>(1, i);
  return cuda::std::visit(Size{}, choice);
}
__global__ void sizesOfChoices(double* out) { out[threadIdx.x] = sizeOfChoice(static_cast<int>(threadIdx.x)); }
bool choicesAreRight() {
  DeviceArray<double> out(blockSize);
  sizesOfChoices<<<1, blockSize>>>(out);
  CHECK(cudaGetLastError());
  std::vector<double> wanted(blockSize);
  for (int i = 0; i < blockSize; ++i) wanted[i] = sizeOfChoice(i);
  return same("choices", out.download(), wanted);
}

// Sorts the block's values, and computes their running sums.
__global__ void sortBlock(const int* in, int* sorted, int* running) {
  using Sort = cub::BlockRadixSort<int, blockSize, 4>;
  using Scan = cub::BlockScan<int, blockSize>;
  __shared__ union {
    Sort::TempStorage sort;
    Scan::TempStorage scan;
  } shared;
  int mine[4];
  for (int i = 0; i < 4; ++i) mine[i] = in[4 * threadIdx.x + i];
  Sort(shared.sort).Sort(mine);
  for (int i = 0; i < 4; ++i) sorted[4 * threadIdx.x + i] = mine[i];
  __syncthreads();
  Scan(shared.scan).InclusiveSum(mine, mine);
  for (int i = 0; i < 4; ++i) running[4 * threadIdx.x + i] = mine[i];
}
bool blockIsSorted() {
  std::vector<int> values = mixedValues(4 * blockSize, 5000), sums(values.size());
  DeviceArray<int> in(values), sorted(values.size()), running(values.size());
  sortBlock<<<1, blockSize>>>(in, sorted, running);
  CHECK(cudaGetLastError());
  std::sort(values.begin(), values.end());
  std::partial_sum(values.begin(), values.end(), sums.begin());
  return same("a sorted block", sorted.download(), values) & same("running sums", running.download(), sums);
}

// Draws from each thread's own generator, whose sequence continues after the pause point.
__global__ void drawNumbers(curandStatePhilox4_32_10_t* states, bool isFirst, uint4* bits, unsigned* events) {
  curandStatePhilox4_32_10_t state = states[threadIdx.x];
  if (isFirst) curand_init(7, threadIdx.x, 0, &state);
  bits[threadIdx.x] = curand4(&state);
  states[threadIdx.x] = state;
  events[threadIdx.x] = curand_poisson(&state, 500.0);
}
// Ten rounds of Philox on a counter (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
uint4 philox(unsigned counter, unsigned sequence) {
  unsigned key[2] = {7, 0}, word[4] = {counter, 0, sequence, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = 0xd2511f53ull * word[0], second = 0xcd9e8d57ull * word[2];
    const auto upper = [](uint64_t product) { return static_cast<unsigned>(product >> 32); };
    const unsigned next[4] = {upper(second) ^ word[1] ^ key[0], static_cast<unsigned>(second), upper(first) ^ word[3] ^ key[1],
                              static_cast<unsigned>(first)};
    std::copy(next, next + 4, word);
    key[0] += 0x9e3779b9, key[1] += 0xbb67ae85;
  }
  return {word[0], word[1], word[2], word[3]};
}
class Generators {
 public:
  bool drawAndCompare() {
    drawNumbers<<<1, blockSize>>>(states, drawn == 0, bits, events);
    CHECK(cudaGetLastError());
    const std::vector<uint4> got = bits.download();
    bool ok = true;
    for (int i = 0; i < blockSize; ++i) {
      const uint4 wanted = philox(drawn, i);
      ok &= std::memcmp(&got[i], &wanted, sizeof wanted) == 0;
    }
    ++drawn;
    const std::vector<unsigned> counts = events.download();
    const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / blockSize;
    return EXPECT(ok) & EXPECT(mean > 490 && mean < 510);  // within five standard deviations of the mean
  }

 private:
  DeviceArray<curandStatePhilox4_32_10_t> states{blockSize};
  DeviceArray<uint4> bits{blockSize};
  DeviceArray<unsigned> events{blockSize};
  unsigned drawn = 0;
};

// Sorts keys before the pause point, and reduces by key after it.
class Table {
 public:
  Table() : keys(values.begin(), values.end()), ones(values.size(), 1) { thrust::sort(keys.begin(), keys.end()); }
  bool isRight() {
    std::map<int, int> wanted;
    for (const int value : values) ++wanted[value];
    thrust::device_vector<int> key(wanted.size()), count(wanted.size());
    thrust::reduce_by_key(keys.begin(), keys.end(), ones.begin(), key.begin(), count.begin());
    std::vector<int> wantedKeys, wantedCounts, gotKeys(wanted.size()), gotCounts(wanted.size());
    for (const auto& [value, times] : wanted) wantedKeys.push_back(value), wantedCounts.push_back(times);
    thrust::copy(key.begin(), key.end(), gotKeys.begin());
    thrust::copy(count.begin(), count.end(), gotCounts.begin());
    return same("keys", gotKeys, wantedKeys) & same("counts of keys", gotCounts, wantedCounts);
  }

 private:
  std::vector<int> values = mixedValues(5000, 300);
  thrust::device_vector<int> keys, ones;
};

int main() {
  Generators generators;
  Table table;
  bool ok = generators.drawAndCompare();
  ok &= countsAreRight<unsigned char>() & countsAreRight<short>() & countsAreRight<int>() & countsAreRight<double>();
  pausePoint();
  ok &= generators.drawAndCompare() & table.isRight();
  ok &= rowsAreAdded() & turnsAreRight() & choicesAreRight() & blockIsSorted();
  return verdict("device-libraries", ok);
}
