#pragma once

#include <cstdint>
#include <span>

#include "stub/worker/execution.h"

namespace vgpu::stub {

// Every attribute of the function that the driver knows.
template <typename Results>
void reportAttributes(Execution& on, CUfunction function, Results& results) {
  static_assert(CU_FUNC_ATTRIBUTE_MAX <= 64);
  uint64_t known = 0;
  auto attributes = results.initAttributes(CU_FUNC_ATTRIBUTE_MAX);
  for (unsigned i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    if (on.driver.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(i), function) != CUDA_SUCCESS) continue;
    attributes.set(i, value);
    known |= uint64_t{1} << i;
  }
  results.setKnown(known);
}

// Records nothing if any GPU can run the launch.
void note(Execution& on, FunctionInfo& function, const LaunchNeed& need);

// Records what a launch, or a kernel node, with these attributes needs of its GPU.
template <typename Params>
void noteNeed(Execution& on, FunctionInfo& function, const Params& p, std::span<const CUlaunchAttribute> attributes) {
  LaunchNeed need{.threads = uint64_t{p.getBlockX()} * p.getBlockY() * p.getBlockZ(), .sharedBytes = p.getSharedBytes()};
  for (auto& attribute : attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute.value.cooperative != 0)
      need.blocks = uint64_t{p.getGridX()} * p.getGridY() * p.getGridZ();
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      auto& cluster = attribute.value.clusterDim;
      need.clusterBlocks = uint64_t{cluster.x} * cluster.y * cluster.z;
    }
  }
  note(on, function, need);
}

}  // namespace vgpu::stub
