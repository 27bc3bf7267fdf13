#include "stub/worker/device-graphs.h"

#include <algorithm>

namespace vgpu::stub {

CUresult moveDeviceNode(Execution& on, uint64_t holder, KnownGraph& graph, const NodePlace& place, const KernelNode& node,
                        CUgraphNode& made) {
  auto* from = fromWire<KnownGraph*>(on.handles.get(api::Kind::GRAPH_EXEC, holder));
  if (!from->held) return CUDA_ERROR_INVALID_VALUE;
  while (from->graph == nullptr && !on.gpu.later.isEmpty()) {
    if (CUresult error = on.driver.cuCtxSynchronize_v2(nullptr)) return error;
    on.gpu.later.poll(on.gpu.progress);
  }
  if (from->graph == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  uint64_t address = from->address;
  graph.holders.push_back(holder);
  DeviceHandles& handles = deviceHandles(on);
  handles.release(address, std::exchange(from->graph, nullptr));
  CUresult result = handles.add(on, place, node, made, address);
  handles.endUnneeded(on);
  return result;
}

void takeBack(Execution& on, uint64_t holder) {
  KnownGraph* to = on.kept.find<KnownGraphs>(holder);
  if (to == nullptr || !to->held || to->graph != nullptr) return;
  DeviceHandles& handles = deviceHandles(on);
  handles.hold(on, to->held->get(), to->address, to->graph);  // on failure the holder stays without a node
  handles.endUnneeded(on);
}

CUresult instantiate(Execution& on, KnownGraph& graph, uint64_t handle, uint64_t flags, CUDA_GRAPH_INSTANTIATE_PARAMS& params) {
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0)
    return on.driver.cuGraphInstantiateWithParams(&graph.executable, graph.graph, &params);
  params.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  DeviceHandles& handles = deviceHandles(on);
  CUresult result = handles.instantiate(on, graph.graph, handles.expectedOf(handle), params, graph.executable);
  if (result == CUDA_SUCCESS) graph.address = toWire(graph.executable);
  return result;
}

CUresult noteSet(Execution& on, KnownGraph& graph, KnownGraphNode& node) {
  const api::Method method = on.method() == api::Method::graphChangeKernel ? api::Method::graphSetKernel : on.method();
  node.set[method].assign(on.words().begin(), on.words().end());
  if (method != api::Method::graphEnable) std::erase(graph.placeholders, static_cast<uint32_t>(&node - graph.nodes.data()));
  graph.isSetSince = true;
  return CUDA_SUCCESS;
}

bool isLaunchable(const KnownGraph& graph) {
  return graph.executable != nullptr && std::ranges::all_of(graph.placeholders, [&](uint32_t number) {
    auto& set = graph.nodes[number].set;
    auto found = set.find(api::Method::graphEnable);
    if (found == set.end()) return false;
    return !api::FrameReader<api::Cuda::GraphEnableParams>(kj::arrayPtr(found->second.data(), found->second.size())).getEnabled();
  });
}

void noteUploaded(KnownGraph& graph) {
  const bool isForKernels = graph.address != 0 || !graph.holders.empty();
  if (!isForKernels || (graph.isUploaded && !graph.isSetSince)) return;
  graph.isUploaded = true;
  graph.isSetSince = false;
  for (auto& node : graph.nodes) node.uploaded = node.set;
}

}  // namespace vgpu::stub
