#include "stub/emulator/stream/device-graph-calls.h"

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/device-graph-node.h"

namespace vgpu::emulator::api {

DeviceGraphs::Answer KernelGraphs::launch(uint64_t graph, GraphStream stream) {
  Driver& driver = context.driver;
  std::shared_ptr<GraphExec> found = driver.graphExecs.find(asHandle<CUgraphExec>(graph));
  if (!found || !found->isForKernels()) return driver.deviceGraphHandles.hold(graph) ? Answer::refused : Answer::stranger;
  if (found->context && &found->context->device != &context.device) return Answer::stranger;
  return environment ? environment->launch(std::move(found), stream) : Answer::refused;  // launched by a kernel of a graph
}

DeviceGraphs::Answer KernelGraphs::change(uint64_t node, const NodeChange& change, bool isMade) {
  DeviceNodes& nodes = context.driver.deviceNodes;
  if (std::shared_ptr<DeviceNode> found = nodes.find(node)) return found->change(context, change, isMade);
  return nodes.hold(node) ? Answer::refused : Answer::stranger;
}

}  // namespace vgpu::emulator::api
