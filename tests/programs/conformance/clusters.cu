// Launches in clusters: how large clusters may be, how many run at once, and which launches are refused.
#include "conformance.h"

#include <cooperative_groups.h>

__global__ void nothing() {}
__global__ void __cluster_dims__(2, 1, 1) inPairs() {}
__global__ void rankOf(unsigned* ranks) {
  if (threadIdx.x == 0) ranks[blockIdx.x] = cooperative_groups::this_cluster().block_rank();
}

namespace {

// A launch of blocks in clusters.
struct Launch {
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};

  Launch(unsigned blocks, unsigned x, unsigned y = 1, unsigned z = 1) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {x, y, z};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(32);
    config.attrs = attributes;
    config.numAttrs = 1;
  }
  Launch(const Launch&) = delete;
  const cudaLaunchConfig_t* get() const { return &config; }
};

template <typename Kernel>
const void* pointer(Kernel* kernel) {
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace

SECTION(launches) {
  for (unsigned x : {1u, 2u, 4u, 8u}) SAY(cudaLaunchKernelExC(Launch(8, x).get(), pointer(nothing), nullptr));
  SAY(cudaLaunchKernelExC(Launch(16, 16).get(), pointer(nothing), nullptr));
  SAY(cudaGetLastError());
  SAY(cudaLaunchKernelExC(Launch(8, 0).get(), pointer(nothing), nullptr));
  SAY(cudaLaunchKernelExC(Launch(9, 3).get(), pointer(nothing), nullptr));
  SAY(cudaLaunchKernelExC(Launch(8, 3).get(), pointer(nothing), nullptr));
  SAY(cudaLaunchKernelExC(Launch(8, 2, 2).get(), pointer(nothing), nullptr));
  SAY(cudaLaunchKernelExC(Launch(8, 2, 1, 0).get(), pointer(nothing), nullptr));
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}

SECTION(notPortable) {
  SAY(cudaFuncSetAttribute(pointer(nothing), cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  SAY(cudaLaunchKernelExC(Launch(16, 16).get(), pointer(nothing), nullptr));
  SAY(cudaLaunchKernelExC(Launch(32, 32).get(), pointer(nothing), nullptr));
  SAY(cudaFuncSetAttribute(pointer(nothing), cudaFuncAttributeNonPortableClusterSizeAllowed, 2));
  SAY(cudaFuncSetAttribute(pointer(nothing), cudaFuncAttributeNonPortableClusterSizeAllowed, 0));
  SAY(cudaLaunchKernelExC(Launch(16, 16).get(), pointer(nothing), nullptr));
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}

SECTION(ofTheKernel) {
  cudaFuncAttributes attributes{};
  SAY(cudaFuncGetAttributes(&attributes, pointer(inPairs)));
  VALUE(attributes.requiredClusterWidth);
  VALUE(attributes.requiredClusterHeight);
  VALUE(attributes.clusterDimMustBeSet);
  VALUE(attributes.nonPortableClusterSizeAllowed);
  SAY(cudaLaunchKernel(pointer(inPairs), dim3(8), dim3(32), nullptr, 0, nullptr));
  SAY(cudaLaunchKernel(pointer(inPairs), dim3(7), dim3(32), nullptr, 0, nullptr));
  SAY(cudaLaunchKernelExC(Launch(8, 2).get(), pointer(inPairs), nullptr));
  SAY(cudaLaunchKernelExC(Launch(8, 4).get(), pointer(inPairs), nullptr));
  SAY(cudaGetLastError());
  SAY(cudaFuncSetAttribute(pointer(nothing), cudaFuncAttributeRequiredClusterWidth, 4));
  SAY(cudaFuncSetAttribute(pointer(nothing), cudaFuncAttributeRequiredClusterHeight, 1));
  SAY(cudaFuncSetAttribute(pointer(nothing), cudaFuncAttributeRequiredClusterDepth, 1));
  SAY(cudaFuncGetAttributes(&attributes, pointer(nothing)));
  VALUE(attributes.requiredClusterWidth);
  SAY(cudaFuncSetAttribute(pointer(inPairs), cudaFuncAttributeRequiredClusterWidth, 4));
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}

SECTION(occupancy) {
  int size = 0, clusters = 0;
  SAY(cudaOccupancyMaxPotentialClusterSize(&size, pointer(nothing), Launch(8, 1).get()));
  VALUE(size);
  SAY(cudaFuncSetAttribute(pointer(nothing), cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  SAY(cudaOccupancyMaxPotentialClusterSize(&size, pointer(nothing), Launch(8, 1).get()));
  VALUE(size);
  SAY(cudaOccupancyMaxPotentialClusterSize(nullptr, pointer(nothing), Launch(8, 1).get()));
  SAY(cudaOccupancyMaxPotentialClusterSize(&size, nullptr, Launch(8, 1).get()));
  for (unsigned x : {1u, 2u, 8u, 16u}) {
    SAY(cudaOccupancyMaxActiveClusters(&clusters, pointer(nothing), Launch(16, x).get()));
    VALUE(clusters > 0);
  }
  SAY(cudaOccupancyMaxActiveClusters(&clusters, pointer(nothing), Launch(16, 32).get()));
  SAY(cudaOccupancyMaxActiveClusters(&clusters, pointer(nothing), Launch(8, 0).get()));
  SAY(cudaOccupancyMaxActiveClusters(&clusters, pointer(inPairs), Launch(8, 2).get()));
  VALUE(clusters > 0);
  SAY(cudaOccupancyMaxActiveClusters(&clusters, pointer(inPairs), Launch(8, 4).get()));
  SAY(cudaOccupancyMaxActiveClusters(nullptr, pointer(nothing), Launch(8, 2).get()));
  Launch tooLarge(8, 2);
  tooLarge.config.dynamicSmemBytes = 1 << 20;
  SAY(cudaOccupancyMaxActiveClusters(&clusters, pointer(nothing), &tooLarge.config));
  VALUE(clusters);
  SAY(cudaGetLastError());
}

SECTION(ranks) {
  unsigned* ranks = nullptr;
  unsigned found[8]{};
  CHECK(cudaMalloc(&ranks, sizeof found));
  void* arguments[] = {&ranks};
  SAY(cudaLaunchKernelExC(Launch(8, 4).get(), pointer(rankOf), arguments));
  SAY(cudaMemcpy(found, ranks, sizeof found, cudaMemcpyDeviceToHost));
  for (unsigned rank : found) VALUE(rank);
}

// A kernel's required cluster size, set by a call instead of __cluster_dims__.
SECTION(required) {
  unsigned* ranks = nullptr;
  CHECK(cudaMalloc(&ranks, 8 * sizeof *ranks));
  void* arguments[] = {&ranks};
  const void* kernel = pointer(rankOf);
  auto launch = [&](unsigned blocks) {
    CHECK(cudaMemset(ranks, 0xff, 8 * sizeof *ranks));
    SAY(cudaLaunchKernel(kernel, dim3(blocks), dim3(32), arguments, 0, nullptr));
    unsigned found[8]{};
    SAY(cudaMemcpy(found, ranks, sizeof found, cudaMemcpyDeviceToHost));
    for (unsigned rank : found) VALUE(static_cast<int>(rank));
    SAY(cudaGetLastError());
  };
  cudaFuncAttributes attributes{};
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeRequiredClusterWidth, -1));
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeRequiredClusterWidth, 64));
  SAY(cudaFuncGetAttributes(&attributes, kernel));
  VALUE(attributes.requiredClusterWidth);
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeRequiredClusterWidth, 4));
  launch(8);
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeRequiredClusterHeight, 1));
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeRequiredClusterDepth, 1));
  SAY(cudaFuncGetAttributes(&attributes, kernel));
  VALUE(attributes.requiredClusterWidth);
  VALUE(attributes.clusterDimMustBeSet);
  launch(8);
  launch(6);
  SAY(cudaLaunchKernelExC(Launch(8, 2).get(), kernel, arguments));
  SAY(cudaLaunchKernelExC(Launch(8, 4).get(), kernel, arguments));
  int clusters = 0;
  SAY(cudaOccupancyMaxActiveClusters(&clusters, kernel, Launch(8, 2).get()));
  SAY(cudaGetLastError());
  for (auto which : {cudaFuncAttributeRequiredClusterWidth, cudaFuncAttributeRequiredClusterHeight, cudaFuncAttributeRequiredClusterDepth})
    SAY(cudaFuncSetAttribute(kernel, which, 0));
  launch(6);
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeClusterSchedulingPolicyPreference, 1));
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeClusterSchedulingPolicyPreference, 9));
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeClusterDimMustBeSet, 1));
  SAY(cudaGetLastError());
}

SECTION(otherAttributes) {
  Launch launch(8, 2);
  launch.config.numAttrs = 2;
  launch.attributes[1].id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
  launch.attributes[1].val.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicySpread;
  SAY(cudaLaunchKernelExC(&launch.config, pointer(nothing), nullptr));
  launch.attributes[1].val.clusterSchedulingPolicyPreference = static_cast<cudaClusterSchedulingPolicy>(9);
  SAY(cudaLaunchKernelExC(&launch.config, pointer(nothing), nullptr));
  launch.attributes[1].id = cudaLaunchAttributePreferredClusterDimension;
  launch.attributes[1].val.preferredClusterDim = {4, 1, 1};
  SAY(cudaLaunchKernelExC(&launch.config, pointer(nothing), nullptr));
  launch.attributes[1].id = cudaLaunchAttributeCooperative;
  launch.attributes[1].val.cooperative = 1;
  SAY(cudaLaunchKernelExC(&launch.config, pointer(nothing), nullptr));
  launch.attributes[1].id = static_cast<cudaLaunchAttributeID>(99);
  SAY(cudaLaunchKernelExC(&launch.config, pointer(nothing), nullptr));
  launch.config.attrs = nullptr;
  SAY(cudaLaunchKernelExC(&launch.config, pointer(nothing), nullptr));
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}
