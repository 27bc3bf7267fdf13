// Cooperative groups, compiled from the toolkit's headers: tiles of one thread up to a block; coalesced, labeled and binary groups, with
// reductions and scans; group-wide asynchronous copies; grid barriers before and after the pause point.
#include "program.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <algorithm>
#include <numeric>

namespace cg = cooperative_groups;

constexpr int blockSize = 256;

__host__ __device__ int valueOf(int thread) { return thread * 7 % 13; }

// Facts that each thread computes about its group: on the device with cooperative groups, on the host with loops.
struct Learned {
  int size, rank, sum, most, running, before, of, some, all;
  bool operator==(const Learned& other) const { return std::memcmp(this, &other, sizeof other) == 0; }
};

template <typename Group>
__device__ void learn(const Group& group, int value, Learned& out) {
  out.size = group.size();
  out.rank = group.thread_rank();
  out.sum = cg::reduce(group, value, cg::plus<int>());
  out.most = cg::reduce(group, value, cg::greater<int>());
  out.running = cg::inclusive_scan(group, value);
  out.before = cg::exclusive_scan(group, value);
  out.of = group.shfl(value, group.size() - 1);
  out.some = group.any(value == 5);
  out.all = group.all(value < 12);
}

Learned learnedOf(const std::vector<int>& members, int thread) {
  Learned out{static_cast<int>(members.size()), 0, 0, 0, 0, 0, valueOf(members.back()), 0, 1};
  for (const int member : members) {
    const int value = valueOf(member);
    if (member < thread) ++out.rank, out.before += value;
    out.sum += value;
    out.most = std::max(out.most, value);
    out.some |= value == 5;
    out.all &= value < 12;
  }
  out.running = out.before + valueOf(thread);
  return out;
}

bool sameLearned(const char* what, const DeviceArray<Learned>& array, std::vector<int> (*membersOf)(int), bool (*takesPart)(int)) {
  const std::vector<Learned> got = array.download();
  for (int thread = 0; thread < blockSize; ++thread) {
    if (!takesPart(thread) || got[thread] == learnedOf(membersOf(thread), thread)) continue;
    std::fprintf(stderr, "%s: thread %d has learned otherwise\n", what, thread);
    return false;
  }
  return true;
}
bool everybody(int) { return true; }

// Tiles of more than one warp exchange data through the shared memory that CUDA reserves in each block.
template <int Size>
__global__ void inTiles(Learned* out) {
  __shared__ cg::block_tile_memory<blockSize> memory;
  const auto block = cg::this_thread_block(memory);
  learn(cg::tiled_partition<Size>(block), valueOf(threadIdx.x), out[threadIdx.x]);
}
template <int Size>
std::vector<int> tileOf(int thread) {
  std::vector<int> members(Size);
  std::iota(members.begin(), members.end(), thread / Size * Size);
  return members;
}
template <int Size>
bool tilesAreRight() {
  DeviceArray<Learned> out(blockSize);
  inTiles<Size><<<1, blockSize>>>(out);
  CHECK(cudaGetLastError());
  return sameLearned("a tile", out, tileOf<Size>, everybody);
}

// The threads of the warp of `thread` for which `alike` holds.
template <typename Alike>
std::vector<int> ofWarp(int thread, Alike alike) {
  std::vector<int> members;
  for (int other = thread / 32 * 32; other < thread / 32 * 32 + 32; ++other)
    if (alike(other)) members.push_back(other);
  return members;
}

__global__ void whoHasCome(Learned* out) {
  if (threadIdx.x % 3 == 1) learn(cg::coalesced_threads(), valueOf(threadIdx.x), out[threadIdx.x]);
}
__global__ void byLabel(Learned* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  learn(cg::labeled_partition(warp, threadIdx.x % 5), valueOf(threadIdx.x), out[threadIdx.x]);
}
__global__ void byPredicate(Learned* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  learn(cg::binary_partition(warp, threadIdx.x % 7 < 2), valueOf(threadIdx.x), out[threadIdx.x]);
}
bool partsOfWarpsAreRight() {
  DeviceArray<Learned> come(blockSize), label(blockSize), predicate(blockSize);
  whoHasCome<<<1, blockSize>>>(come);
  byLabel<<<1, blockSize>>>(label);
  byPredicate<<<1, blockSize>>>(predicate);
  CHECK(cudaGetLastError());
  const auto third = [](int thread) { return thread % 3 == 1; };
  bool ok = sameLearned("who has come", come, [](int thread) { return ofWarp(thread, [](int other) { return other % 3 == 1; }); }, third);
  ok &= sameLearned("a label", label, [](int thread) { return ofWarp(thread, [=](int other) { return other % 5 == thread % 5; }); },
                    everybody);
  return ok & sameLearned("a predicate", predicate, [](int thread) {
           return ofWarp(thread, [=](int other) { return (other % 7 < 2) == (thread % 7 < 2); });
         }, everybody);
}

// Copies the block's part of `in` to shared memory with a group copy of the block, then other data with one of each warp; uses invoke_one.
__global__ void copiesOfGroups(const int* in, int count, int* sums) {
  extern __shared__ int shared[];
  __shared__ int total;
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  cg::memcpy_async(block, shared, in + blockIdx.x * count, sizeof(int) * count);
  cg::wait(block);
  cg::invoke_one(block, [&] { total = 0; });
  block.sync();
  int sum = 0;
  for (int i = threadIdx.x; i < count; i += blockSize) sum += shared[i];
  sum = cg::reduce(warp, sum, cg::plus<int>());
  const int whole = cg::invoke_one_broadcast(warp, [&] { return atomicAdd(&total, sum) + sum; });
  block.sync();
  cg::memcpy_async(warp, shared + 32 * warp.meta_group_rank(), in, sizeof(int) * 32);
  cg::wait_prior<0>(warp);
  warp.sync();
  if (whole == total && warp.thread_rank() == 31) sums[blockIdx.x] = total + shared[threadIdx.x];
}
bool copiesAreRight() {
  const int blocks = 3, count = 500;
  std::vector<int> in(blocks * count), wanted(blocks, 0);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 3 % 101 + 1);
  for (int i = 0; i < blocks; ++i) wanted[i] = std::accumulate(in.begin() + i * count, in.begin() + (i + 1) * count, in[31]);
  DeviceArray<int> from(in), sums(blocks);
  copiesOfGroups<<<blocks, blockSize, sizeof(int) * count>>>(from, count, sums);
  CHECK(cudaGetLastError());
  return same("copies of groups", sums.download(), wanted);
}

// In each round, each element becomes its right neighbour's value of the previous round, plus one.
__global__ void __launch_bounds__(1024) neighbours(int* now, int* next, int count, int rounds) {
  const auto grid = cg::this_grid();
  for (int round = 0; round < rounds; ++round) {
    for (int i = static_cast<int>(grid.thread_rank()); i < count; i += static_cast<int>(grid.size())) next[i] = now[(i + 1) % count] + 1;
    grid.sync();
    for (int i = static_cast<int>(grid.thread_rank()); i < count; i += static_cast<int>(grid.size())) now[i] = next[i];
    auto token = grid.barrier_arrive();
    grid.barrier_wait(std::move(token));
  }
}
class Ring {
 public:
  Ring() : now(elements()), next(count) {}
  void turn(int rounds) {
    int *nowAt = now, *nextAt = next, size = count;
    void* arguments[] = {&nowAt, &nextAt, &size, &rounds};
    CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(neighbours), 4, 1024, arguments));
    turned += rounds;
  }
  bool isRight() const {
    std::vector<int> wanted(count);
    for (int i = 0; i < count; ++i) wanted[i] = (i + turned) % count + turned;
    return same("a ring", now.download(), wanted);
  }

 private:
  static constexpr int count = 5000;
  static std::vector<int> elements() {
    std::vector<int> values(count);
    std::iota(values.begin(), values.end(), 0);
    return values;
  }
  DeviceArray<int> now, next;
  int turned = 0;
};

int main() {
  Ring ring;
  ring.turn(3);
  bool ok = tilesAreRight<1>() & tilesAreRight<4>() & tilesAreRight<16>() & tilesAreRight<32>();
  pausePoint();
  ok &= tilesAreRight<64>() & tilesAreRight<128>() & tilesAreRight<256>();
  ok &= partsOfWarpsAreRight() & copiesAreRight();
  ring.turn(2);
  CHECK(cudaDeviceSynchronize());
  return verdict("cooperative-groups", ok & ring.isRight());
}
