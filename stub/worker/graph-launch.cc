#include "stub/worker/graph-launch.h"

#include <algorithm>

#include "stub/worker/device-graphs.h"
#include "stub/worker/graph-restore.h"

namespace vgpu::stub {

uint64_t OtherNumbers::find(uint32_t line, uint64_t otherwise) const {
  for (size_t i = 0; i < std::min(lines.size(), numbers.size()); ++i)
    if (lines[i] == line) return numbers[i];
  return otherwise;
}

CUresult launchGraph(Execution& on, KnownGraph& graph, uint64_t stream, const OtherNumbers& others) {
  if (!isLaunchable(graph)) {
    setLate(on, graph);
    if (!isLaunchable(graph)) return CUDA_ERROR_INVALID_VALUE;
  }
  CUstream real = on.stream(stream);
  if (graph.function != 0) on.gpu.launched(stream, graph.function);
  if (on.session.prints) on.noteLaunch();
  for (uint32_t number : graph.own) {
    const OwnWords& own = *graph.nodes[number].own;
    OwnOperations now(on, own, others.find(own.line, on.sequence()));
    if (CUresult error = on.driver.cuGraphExecBatchMemOpNodeSetParams(graph.executable, graph.nodes[number].node, &now.node))
      return error;
  }
  for (uint32_t number : graph.records)  // another device's event is noted by that device's thread (eventNumbered)
    if (const uint64_t event = graph.nodes[number].event; handleDevice(event) == on.device()) on.eventTimes.recorded(event);
  noteUploaded(graph);  // a launch uploads pending changes
  return on.driver.cuGraphLaunch(graph.executable, real);
}

}  // namespace vgpu::stub
