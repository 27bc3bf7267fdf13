#include "stub/worker/device-handles.h"

#include <algorithm>

#include "stub/worker/execution.h"

namespace vgpu::stub {

namespace {

// A piece of the driver's has 2 MiB, and room for half of these graphs.
constexpr size_t mostSpares = 20000;

CUlaunchAttribute* findUpdatable(std::span<CUlaunchAttribute> attributes) {
  auto isIt = [](const CUlaunchAttribute& one) { return one.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE; };
  auto found = std::ranges::find_if(attributes, isIt);
  return found == attributes.end() ? nullptr : &*found;
}

// Something that can be instantiated and is never launched: a fill of a word.
CUresult makeSpareGraph(Execution& on, CUgraph& made) {
  if (CUresult error = on.driver.cuGraphCreate(&made, 0)) return error;
  CUDA_MEMSET_NODE_PARAMS fill{on.session.gpuAddress(&on.shared().completionWord(0).done), 0, 0, 4, 1, 1};
  CUgraphNode node;
  return on.driver.cuGraphAddMemsetNode(&node, made, nullptr, 0, &fill, on.gpu.context.get());
}

// Runs `make` until `wanted` is among `spares`.
template <typename Spares, typename Make>
CUresult fish(const Spares& spares, uint64_t wanted, Make&& make) {
  while (!spares.contains(wanted)) {
    if (spares.size() == mostSpares) return CUDA_ERROR_NOT_SUPPORTED;
    if (CUresult error = make()) return error;
  }
  return CUDA_SUCCESS;
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
  for (auto& attribute : node.attributes)
    if (CUresult error = on.driver.cuGraphKernelNodeSetAttribute(made, attribute.id, &attribute.value)) return error;
  return CUDA_SUCCESS;
}

DeviceHandles& deviceHandles(Execution& on) { return on.kept.of<DeviceHandles>(); }

uint64_t DeviceHandles::expectedOf(uint64_t graph) const {
  auto found = expected.find(graph);
  return found == expected.end() ? 0 : found->second;
}

CUresult DeviceHandles::fishGraph(Execution& on, uint64_t wanted) {
  CUgraph graph = nullptr;
  CUresult result = fish(spareGraphs, wanted, [&]() -> CUresult {
    if (graph == nullptr)
      if (CUresult error = makeSpareGraph(on, graph)) return error;
    CUgraphExec spare = nullptr;
    if (CUresult error = on.driver.cuGraphInstantiateWithFlags(&spare, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)) return error;
    spareGraphs[toWire(spare)] = spare;
    return CUDA_SUCCESS;
  });
  if (graph != nullptr) on.driver.cuGraphDestroy(graph);
  return result;
}

CUresult DeviceHandles::instantiate(Execution& on, CUgraph graph, uint64_t wanted, CUDA_GRAPH_INSTANTIATE_PARAMS& params,
                                    CUgraphExec& made) {
  constexpr int mostAttempts = 4;
  for (int attempt = 0; attempt < mostAttempts; ++attempt) {
    if (wanted != 0) {
      if (CUresult error = fishGraph(on, wanted)) return error;
      if (CUresult error = on.driver.cuGraphExecDestroy(spareGraphs.extract(wanted).mapped())) return error;
    }
    if (CUresult error = on.driver.cuGraphInstantiateWithParams(&made, graph, &params)) return error;
    if (wanted == 0 || toWire(made) == wanted) return CUDA_SUCCESS;
    if (CUresult error = on.driver.cuGraphExecDestroy(std::exchange(made, nullptr))) return error;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult DeviceHandles::fishNode(Execution& on, KernelNode node, uint64_t wanted) {
  return fish(spareNodes, wanted, [&]() -> CUresult {
    CUgraph graph = nullptr;
    CUgraphNode made = nullptr;
    if (CUresult error = on.driver.cuGraphCreate(&graph, 0)) return error;
    if (CUresult error = addKernelNode(on, {graph, nullptr, 0}, node, made)) return on.driver.cuGraphDestroy(graph), error;
    spareNodes[toWire(findUpdatable(node.attributes)->value.deviceUpdatableKernelNode.devNode)] = graph;
    return CUDA_SUCCESS;
  });
}

CUresult DeviceHandles::add(Execution& on, const NodePlace& place, KernelNode node, CUgraphNode& made, uint64_t& address) {
  if (address != 0) {
    if (CUresult error = fishNode(on, node, address)) return error;
    if (CUresult error = on.driver.cuGraphDestroy(spareNodes.extract(address).mapped())) return error;
  }
  if (CUresult error = addKernelNode(on, place, node, made)) return error;
  const uint64_t given = toWire(findUpdatable(node.attributes)->value.deviceUpdatableKernelNode.devNode);
  if (address != 0 && given != address) return CUDA_ERROR_NOT_SUPPORTED;
  address = given;
  return CUDA_SUCCESS;
}

CUresult DeviceHandles::hold(Execution& on, KernelNode node, uint64_t address, CUgraph& made) {
  if (CUresult error = fishNode(on, node, address)) return error;
  made = spareNodes.extract(address).mapped();
  return CUDA_SUCCESS;
}

void DeviceHandles::endSpares(Execution& on) {
  for (auto& [address, graph] : std::exchange(spareGraphs, {})) on.driver.cuGraphExecDestroy(graph);
  for (auto& [address, graph] : std::exchange(spareNodes, {})) on.driver.cuGraphDestroy(graph);
  expected.clear();
}

}  // namespace vgpu::stub
