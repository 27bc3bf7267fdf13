// Other kinds of launches: with attributes, in clusters, from kernels, with tensor maps.
#pragma once

#include <cooperative_groups.h>

#include "../hopper.h"
#include "place.h"

namespace families {

// A launch of `blocks` in the place's stream.
template <size_t Count>
cudaLaunchConfig_t launchWith(cudaLaunchAttribute (&attributes)[Count], const Place& place, int blocks) {
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(blocks);
  launch.blockDim = dim3(128);
  launch.stream = place.stream;
  launch.attrs = attributes;
  launch.numAttrs = Count;
  return launch;
}

// Adds the value in the shared memory of the other block of its cluster.
__global__ void addNeighbours(uint32_t* data, int count, uint32_t value) {
  __shared__ uint32_t part;
  const auto cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) part = value + cluster.block_rank();
  cluster.sync();
  const uint32_t other = *cluster.map_shared_rank(&part, cluster.block_rank() ^ 1);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += other + cluster.block_rank();
  cluster.sync();
}

inline bool clusters(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  const Numbers values = place.numbers();
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {2, 1, 1};
  attributes[1].id = cudaLaunchAttributeMemSyncDomain;
  attributes[1].val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
  const cudaLaunchConfig_t launch = launchWith(attributes, place, (place.blocks() + 1) / 2 * 2);
  int atOnce = 0;
  CHECK(cudaOccupancyMaxActiveClusters(&atOnce, addNeighbours, &launch));
  place.write(data, values);
  CHECK(cudaLaunchKernelEx(&launch, addNeighbours, static_cast<uint32_t*>(data), place.count(), 20u));
  return EXPECT(atOnce > 0) & place.holds("clusters", data, 21);
}

// The second kernel may begin before the first has ended, and waits for it; an event signals that all of its blocks have begun.
__global__ void addFollowing(uint32_t* data, int count, uint32_t value) {
  cudaGridDependencySynchronize();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}

inline bool followingLaunches(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  const Numbers values = place.numbers();
  cudaEvent_t begun;
  CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
  cudaLaunchAttribute attributes[3]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributePriority;
  attributes[1].val.priority = 0;
  attributes[2].id = cudaLaunchAttributeLaunchCompletionEvent;
  attributes[2].val.launchCompletionEvent = {begun, 0};
  const cudaLaunchConfig_t launch = launchWith(attributes, place, place.blocks());
  place.write(data, values);
  place.add(data, 1);
  for (uint32_t value : {2u, 3u})
    CHECK(cudaLaunchKernelEx(&launch, addFollowing, static_cast<uint32_t*>(data), place.count(), value));
  CHECK(cudaEventSynchronize(begun));
  const bool ok = place.holds("following launches", data, 6);
  CHECK(cudaEventDestroy(begun));
  return ok;
}

// A kernel that launches a child in its own stream, and a tail launch.
__global__ void addByLaunching(uint32_t* data, int count, uint32_t value) {
  const int blocks = (count + 127) / 128;
  addTo<<<blocks, 128>>>(data, count, value);
  addTo<<<blocks, 128, 0, cudaStreamTailLaunch>>>(data, count, 1);
}

inline bool deviceLaunches(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  const Numbers values = place.numbers();
  place.write(data, values);
  addByLaunching<<<1, 1, 0, place.stream>>>(data, place.count(), 22);
  CHECK(cudaGetLastError());
  place.add(data, 2);
  return place.holds("launches of kernels", data, 25);
}

constexpr int tensorWidth = 16, tensorHeight = 8;

// Each block adds `value` to the elements of its box of the tensor.
__global__ void addInBox(const __grid_constant__ CUtensorMap map, uint32_t value) {
  __shared__ __align__(128) uint32_t box[tensorHeight * tensorWidth];
  __shared__ uint64_t barrier;
  const int y = blockIdx.x * tensorHeight;
  if (threadIdx.x == 0) {
    initBarrier(&barrier, 1);
    publishBarriers();
    arriveExpecting(&barrier, sizeof box);
    loadTensor2d(box, &map, 0, y, &barrier);
  }
  __syncthreads();
  waitFor(&barrier, 0);
  box[threadIdx.x] += value;
  publishShared();
  __syncthreads();
  if (threadIdx.x != 0) return;
  storeTensor2d(&map, 0, y, box);
  commitCopies();
  waitForCopies();
}

// A tensor map that is later moved to other memory. Elements beyond the tensor's last row are not written.
inline bool tensorMaps(const Place& place) {
  DeviceArray<uint32_t> first(place.count()), second(place.count());
  const Numbers values = place.numbers();
  const cuuint64_t rows = static_cast<cuuint64_t>(place.count()) / tensorWidth;
  const cuuint64_t extents[] = {tensorWidth, rows}, strides[] = {tensorWidth * sizeof(uint32_t)};
  const cuuint32_t box[] = {tensorWidth, tensorHeight}, steps[] = {1, 1};
  const unsigned blocks = static_cast<unsigned>((rows + tensorHeight - 1) / tensorHeight);
  alignas(64) CUtensorMap map{};
  CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, static_cast<uint32_t*>(first), extents, strides, box, steps,
       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  place.write(first, values);
  place.write(second, values);
  addInBox<<<blocks, tensorWidth * tensorHeight, 0, place.stream>>>(map, 23);
  CALL(cuTensorMapReplaceAddress, &map, static_cast<uint32_t*>(second));
  addInBox<<<blocks, tensorWidth * tensorHeight, 0, place.stream>>>(map, 24);
  CHECK(cudaGetLastError());
  Numbers found(place.count()), wanted;
  bool ok = true;
  for (auto [data, value] : {std::pair(&first, 23u), {&second, 24u}}) {
    CHECK(cudaMemcpyAsync(found.data(), *data, place.bytes(), cudaMemcpyDeviceToHost, place.stream));
    place.wait();
    wanted = place.numbers(value);
    std::copy(values.begin() + static_cast<long>(rows) * tensorWidth, values.end(), wanted.begin() + static_cast<long>(rows) * tensorWidth);
    ok &= same("tensor maps", found, wanted);
  }
  return ok;
}

}  // namespace families
