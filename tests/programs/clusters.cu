// Clusters: blocks that access each other's shared memory and wait for each other.
#include "program.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int blockSize = 64;

// Each block stores its index in shared memory and reads that of the next block of its cluster.
__global__ void readNext(unsigned* next, unsigned* ranks) {
  __shared__ unsigned mine[blockSize];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = blockIdx.x * blockSize + threadIdx.x;
  cluster.sync();
  unsigned other = (cluster.block_rank() + 1) % cluster.num_blocks();
  next[blockIdx.x * blockSize + threadIdx.x] = cluster.map_shared_rank(mine, other)[threadIdx.x];
  if (threadIdx.x == 0) ranks[blockIdx.x] = cluster.block_rank();
  cluster.sync();  // no block ends while another reads its memory
}

// The same with cluster dimensions of the kernel itself; the blocks of a cluster count in the first block's memory.
__global__ void __cluster_dims__(2, 2, 1) countInFirst(unsigned* counts) {
  __shared__ unsigned count;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) count = 0;
  cluster.sync();
  atomicAdd(cluster.map_shared_rank(&count, 0), 1);
  cluster.sync();
  dim3 at = cluster.block_index();
  unsigned clusterIndex = blockIdx.y / 2 * (gridDim.x / 2) + blockIdx.x / 2;
  bool isPlaced = at.x == blockIdx.x % 2 && at.y == blockIdx.y % 2 && at.z == 0 && cluster.block_rank() == at.y * 2 + at.x;
  if (cluster.block_rank() == 0 && threadIdx.x == 0) counts[clusterIndex] = count;
  if (!isPlaced) counts[clusterIndex] = 0;
}

// The first block arrives at the barrier, and waits only after the second has arrived: arriving does not block. Half of each block's
// threads have ended and are not waited for.
__global__ void arriveFirst(unsigned* seen) {
  __shared__ volatile unsigned flag;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x >= blockSize / 2) return;
  if (threadIdx.x == 0) flag = 0;
  auto token = cluster.barrier_arrive();
  if (cluster.block_rank() == 0) {
    if (threadIdx.x == 0) {
      while (flag == 0) {
      }
      *seen = flag;
    }
    __syncwarp();
    cluster.barrier_wait(std::move(token));
  } else {
    cluster.barrier_wait(std::move(token));
    if (threadIdx.x == 0) *cluster.map_shared_rank(const_cast<unsigned*>(&flag), 0) = 7;
  }
  cluster.sync();
}

// Queries about a pointer into shared memory.
__global__ void describePointers(unsigned* found) {
  __shared__ unsigned word;
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), other = rank ^ 1;
  unsigned* there = cluster.map_shared_rank(&word, other);
  found[4 * rank] = cluster.query_shared_rank(&word);
  found[4 * rank + 1] = cluster.query_shared_rank(there);
  found[4 * rank + 2] = __isShared(&word);
  found[4 * rank + 3] = cluster.map_shared_rank(&word, rank) != there;
  cluster.sync();
}

cudaLaunchAttribute clusterOf(unsigned x) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {x, 1, 1};
  return attribute;
}

cudaLaunchConfig_t shapeOf(unsigned blocks, cudaLaunchAttribute& attribute) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = blockSize;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return config;
}

bool readsNext(unsigned blocks, unsigned cluster) {
  DeviceArray<unsigned> next(blocks * blockSize), ranks(blocks);
  cudaLaunchAttribute attribute = clusterOf(cluster);
  cudaLaunchConfig_t config = shapeOf(blocks, attribute);
  CHECK(cudaLaunchKernelEx(&config, readNext, static_cast<unsigned*>(next), static_cast<unsigned*>(ranks)));
  CHECK(cudaDeviceSynchronize());
  std::vector<unsigned> expected(blocks * blockSize), expectedRanks(blocks);
  for (unsigned block = 0; block < blocks; ++block) {
    expectedRanks[block] = block % cluster;
    unsigned other = block / cluster * cluster + (block + 1) % cluster;
    for (unsigned i = 0; i < blockSize; ++i) expected[block * blockSize + i] = other * blockSize + i;
  }
  return same("next", next.download(), expected) & same("ranks", ranks.download(), expectedRanks);
}

bool countsInFirst() {
  DeviceArray<unsigned> counts(6);
  countInFirst<<<dim3(6, 4), blockSize>>>(counts);
  CHECK(cudaDeviceSynchronize());
  bool ok = same("counts", counts.download(), std::vector<unsigned>(6, 4 * blockSize));
  countInFirst<<<dim3(5, 4), blockSize>>>(counts);  // the kernel's clusters do not divide the grid
  return ok & EXPECT(cudaGetLastError() != cudaSuccess);
}

bool arrivesFirst() {
  DeviceArray<unsigned> seen(1);
  cudaLaunchAttribute attribute = clusterOf(2);
  cudaLaunchConfig_t config = shapeOf(2, attribute);
  CHECK(cudaLaunchKernelEx(&config, arriveFirst, static_cast<unsigned*>(seen)));
  CHECK(cudaDeviceSynchronize());
  return same("seen", seen.download(), {7});
}

bool describesPointers() {
  DeviceArray<unsigned> found(8);
  cudaLaunchAttribute attribute = clusterOf(2);
  cudaLaunchConfig_t config = shapeOf(2, attribute);
  CHECK(cudaLaunchKernelEx(&config, describePointers, static_cast<unsigned*>(found)));
  CHECK(cudaDeviceSynchronize());
  return same("pointers", found.download(), {0, 1, 1, 1, 1, 0, 1, 1});
}

bool refusesWrongClusters() {
  DeviceArray<unsigned> next(64 * blockSize), ranks(64);
  auto isRefused = [&](unsigned blocks, unsigned cluster) {
    cudaLaunchAttribute attribute = clusterOf(cluster);
    cudaLaunchConfig_t config = shapeOf(blocks, attribute);
    cudaError_t result = cudaLaunchKernelEx(&config, readNext, static_cast<unsigned*>(next), static_cast<unsigned*>(ranks));
    cudaGetLastError();
    return result != cudaSuccess;
  };
  // Clusters that do not divide the grid, exceed the portable size, or have zero blocks.
  return EXPECT(isRefused(5, 2)) & EXPECT(isRefused(64, 16)) & EXPECT(isRefused(4, 0)) & readsNext(4, 2);
}

bool occupancyIsKnown() {
  cudaLaunchAttribute attribute = clusterOf(4);
  cudaLaunchConfig_t config = shapeOf(64, attribute);
  int ofFour = 0, ofEight = 0, largest = 0;
  CHECK(cudaOccupancyMaxActiveClusters(&ofFour, readNext, &config));
  attribute = clusterOf(8);
  CHECK(cudaOccupancyMaxActiveClusters(&ofEight, readNext, &config));
  CHECK(cudaOccupancyMaxPotentialClusterSize(&largest, readNext, &config));
  return EXPECT(ofEight > 0) & EXPECT(ofFour >= ofEight) & EXPECT(largest == 8);
}

bool largeClustersWork() {
  cudaLaunchAttribute attribute = clusterOf(16);
  cudaLaunchConfig_t config = shapeOf(32, attribute);
  int largest = 0, active = 0;
  CHECK(cudaOccupancyMaxPotentialClusterSize(&largest, readNext, &config));
  if (largest < 16) return EXPECT(largest >= 8);  // a partition of a GPU
  CHECK(cudaOccupancyMaxActiveClusters(&active, readNext, &config));
  return active == 0 || readsNext(32, 16);
}

int main() {
  int hasClusters = 0;
  CHECK(cudaDeviceGetAttribute(&hasClusters, cudaDevAttrClusterLaunch, 0));
  if (!hasClusters) return notHere;
  bool ok = readsNext(8, 4) & countsInFirst() & refusesWrongClusters() & occupancyIsKnown();
  CHECK(cudaFuncSetAttribute(readNext, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));

  pausePoint();

  ok &= largeClustersWork() & readsNext(6, 1) & countsInFirst() & arrivesFirst() & describesPointers();
  return verdict("clusters", ok);
}
