#include "stub/emulator/stream/device-graph-check.h"

#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {
namespace {

using Step = GraphExec::Step;

// Arrays, and host memory that is not pinned, cannot be copied.
bool canBeCopied(const AddressSpace& space, CUmemorytype type, const void* host, CUdeviceptr device) {
  if (type == CU_MEMORYTYPE_ARRAY) return false;
  return space.find(type == CU_MEMORYTYPE_HOST ? asNumber(host) : device).has_value();
}

bool isPossible(const AddressSpace& space, const Step& step) {
  const Operation& operation = step.operation;
  switch (operation.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return !callsOf(describedAs<LaunchRequest>(operation, operation.type).function->kernel()).launchKernels;
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      const auto& copy = describedAs<CUDA_MEMCPY3D>(operation, operation.type);
      return canBeCopied(space, copy.srcMemoryType, copy.srcHost, copy.srcDevice) &&
             canBeCopied(space, copy.dstMemoryType, copy.dstHost, copy.dstDevice);
    }
    default:
      return operation.type == CU_GRAPH_NODE_TYPE_MEMSET;
  }
}

}  // namespace

std::optional<InstantiateProblem> findProblem(const GraphExec& graph) {
  const Context* first = nullptr;
  for (const Step& step : graph.steps) {
    if (graph.isForKernels() && !isPossible(graph.driver.space, step))
      return InstantiateProblem{CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, step.path.back()};
    if (step.operation.type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    Function& function = *describedAs<LaunchRequest>(step.operation, step.operation.type).function;
    if (!graph.isForKernels() && !callsOf(function.kernel()).launchGraphs) continue;
    if (first && first != &function.context)
      return InstantiateProblem{CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, step.path.back()};
    first = &function.context;
  }
  if (graph.isForKernels() && graph.steps.empty()) return InstantiateProblem{CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
  return std::nullopt;
}

}  // namespace vgpu::emulator::api
