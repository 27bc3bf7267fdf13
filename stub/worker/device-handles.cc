#include "stub/worker/device-handles.h"

#include <algorithm>

#include "stub/worker/execution.h"

namespace vgpu::stub {

namespace {

// The driver allocates these graphs in pieces of 2 MiB, and one piece has room for half as many.
constexpr size_t mostSpares = 20000;

CUlaunchAttribute* findUpdatable(std::span<CUlaunchAttribute> attributes) {
  auto isIt = [](const CUlaunchAttribute& one) { return one.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE; };
  auto found = std::ranges::find_if(attributes, isIt);
  return found == attributes.end() ? nullptr : &*found;
}

uint64_t handleOf(const KernelNode& node) { return toWire(findUpdatable(node.attributes)->value.deviceUpdatableKernelNode.devNode); }

// A graph that can be instantiated and is never launched: a fill of a word.
CUresult makeSpareGraph(Execution& on, CUgraph& made) {
  if (CUresult error = on.driver.cuGraphCreate(&made, 0)) return error;
  CUDA_MEMSET_NODE_PARAMS fill{on.session.gpuAddress(&on.shared().completionWord(0).done), 0, 0, 4, 1, 1};
  CUgraphNode node;
  return on.driver.cuGraphAddMemsetNode(&node, made, nullptr, 0, &fill, on.gpu.context.get());
}

// Makes the driver give `wanted` to the next object, as far as that can be known. Makes spares until one has it, and ends that spare. If
// the next spare gets it again, it is the next handle that the driver reuses; otherwise the driver used another free one first, and the
// loop goes on.
template <typename Spares, typename Make, typename End>
CUresult settle(Spares& spares, uint64_t wanted, Make&& make, End&& end) {
  for (bool isNext = false;;) {
    const bool isThere = spares.contains(wanted);
    if (isThere) {
      if (CUresult error = end(spares.extract(wanted).mapped())) return error;
      if (isNext) return CUDA_SUCCESS;
    }
    isNext = isThere;
    if (spares.size() == mostSpares) return CUDA_ERROR_NOT_SUPPORTED;
    if (CUresult error = make()) return error;
  }
}

}  // namespace

bool KernelNode::isDeviceUpdatable() const { return findUpdatable(attributes) != nullptr; }

KeptKernelNode::KeptKernelNode(const KernelNode& node, std::span<const unsigned char> parameters, std::span<const uint32_t> offsets)
    : params(node.params),
      attributes(node.attributes.begin(), node.attributes.end()),
      parameters(parameters.begin(), parameters.end()),
      offsets(offsets.begin(), offsets.end()) {}

KernelNode KeptKernelNode::get() {
  pointers.clear();
  for (uint32_t offset : offsets) pointers.push_back(parameters.data() + offset);
  params.kernelParams = pointers.data();
  return {params, attributes};
}

CUresult addKernelNode(Execution& on, const NodePlace& place, const KernelNode& node, CUgraphNode& made) {
  if (CUresult error = on.driver.cuGraphAddKernelNode_v2(&made, place.graph, place.before, place.count, &node.params)) return error;
  if (CUlaunchAttribute* updatable = findUpdatable(node.attributes)) updatable->value.deviceUpdatableKernelNode.devNode = nullptr;
  for (auto& attribute : node.attributes)
    if (CUresult error = on.driver.cuGraphKernelNodeSetAttribute(made, attribute.id, &attribute.value)) return error;
  return CUDA_SUCCESS;
}

DeviceHandles& deviceHandles(Execution& on) { return on.kept.of<DeviceHandles>(); }

uint64_t DeviceHandles::expectedOf(uint64_t graph) const {
  auto found = expected.find(graph);
  return found == expected.end() ? 0 : found->second;
}

CUresult DeviceHandles::settleGraph(Execution& on, uint64_t wanted) {
  CUgraph graph = nullptr;
  if (CUresult error = makeSpareGraph(on, graph)) return error;
  auto make = [&] {
    CUgraphExec spare = nullptr;
    CUresult result = on.driver.cuGraphInstantiateWithFlags(&spare, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    if (result == CUDA_SUCCESS) spareGraphs[toWire(spare)] = spare;
    return result;
  };
  CUresult result = settle(spareGraphs, wanted, make, [&](CUgraphExec spare) { return on.driver.cuGraphExecDestroy(spare); });
  on.driver.cuGraphDestroy(graph);
  return result;
}

CUresult DeviceHandles::instantiate(Execution& on, CUgraph graph, uint64_t wanted, CUDA_GRAPH_INSTANTIATE_PARAMS& params,
                                    CUgraphExec& made) {
  if (wanted != 0)
    if (CUresult error = settleGraph(on, wanted)) return error;
  if (CUresult error = on.driver.cuGraphInstantiateWithParams(&made, graph, &params)) return error;
  if (wanted == 0 || toWire(made) == wanted) return CUDA_SUCCESS;
  on.driver.cuGraphExecDestroy(std::exchange(made, nullptr));
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult DeviceHandles::makeSpareNode(Execution& on, KernelNode node) {
  CUgraph graph = nullptr;
  CUgraphNode made = nullptr;
  if (CUresult error = on.driver.cuGraphCreate(&graph, 0)) return error;
  if (CUresult error = addKernelNode(on, {graph, nullptr, 0}, node, made)) return on.driver.cuGraphDestroy(graph), error;
  spareNodes[handleOf(node)] = graph;
  return CUDA_SUCCESS;
}

CUresult DeviceHandles::add(Execution& on, const NodePlace& place, KernelNode node, CUgraphNode& made, uint64_t& address) {
  if (address != 0) {
    auto make = [&] { return makeSpareNode(on, node); };
    auto end = [&](CUgraph spare) { return on.driver.cuGraphDestroy(spare); };
    if (CUresult error = settle(spareNodes, address, make, end)) return error;
  }
  if (CUresult error = addKernelNode(on, place, node, made)) return error;
  if (address != 0 && handleOf(node) != address) return CUDA_ERROR_NOT_SUPPORTED;
  address = handleOf(node);
  return CUDA_SUCCESS;
}

CUresult DeviceHandles::hold(Execution& on, KernelNode node, uint64_t address, CUgraph& made) {
  while (!spareNodes.contains(address)) {
    if (spareNodes.size() == mostSpares) return CUDA_ERROR_NOT_SUPPORTED;
    if (CUresult error = makeSpareNode(on, node)) return error;
  }
  made = spareNodes.extract(address).mapped();
  return CUDA_SUCCESS;
}

void DeviceHandles::endSpares(Execution& on) {
  for (auto& [address, graph] : std::exchange(spareGraphs, {})) on.driver.cuGraphExecDestroy(graph);
  for (auto& [address, graph] : std::exchange(spareNodes, {})) on.driver.cuGraphDestroy(graph);
  expected.clear();
}

}  // namespace vgpu::stub
