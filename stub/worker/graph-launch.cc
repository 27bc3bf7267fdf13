#include "stub/worker/graph-launch.h"

#include "stub/worker/device-graphs.h"

namespace vgpu::stub {

CUresult launchGraph(Execution& on, KnownGraph& graph, uint64_t stream) {
  if (graph.executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUstream real = on.stream(stream);
  if (graph.function != 0) on.gpu.launched(stream, graph.function);
  if (on.session.prints) on.noteLaunch();
  if (graph.waits && stream != 0)  // see DeviceProgress
    if (CUresult error = on.gpu.progress.joinLegacy()) return error;
  for (uint32_t number : graph.own) {
    OwnOperations now(on, *graph.nodes[number].own, on.sequence());
    if (CUresult error = on.driver.cuGraphExecBatchMemOpNodeSetParams(graph.executable, graph.nodes[number].node, &now.node))
      return error;
  }
  for (uint32_t number : graph.records) on.eventTimes.recorded(graph.nodes[number].event);
  noteUploaded(graph);  // a launch uploads what it needs
  return on.driver.cuGraphLaunch(graph.executable, real);
}

}  // namespace vgpu::stub
