// With `graph-names=1`, an object that an executable graph names cannot be destroyed before the graph. A real driver does not check, and
// uses the destroyed object.
#include <algorithm>
#include <functional>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {
namespace {

void requireUnnamed(Driver& driver, const std::function<bool(const GraphExec::Step&)>& names) {
  if (!driver.settings.graphNames) return;
  for (const std::shared_ptr<GraphExec>& exec : driver.graphExecs.all()) {
    std::lock_guard lock(exec->mutex);
    if (std::any_of(exec->steps.begin(), exec->steps.end(), names)) refuse(CUDA_ERROR_ILLEGAL_STATE);
  }
}

bool touches(CUdeviceptr address, uint64_t bytes, CUdeviceptr first, uint64_t count) {
  return address < first + count && first < address + bytes;
}

}  // namespace

void requireModuleUnnamed(Driver& driver, const LoadedModule& module) {
  requireUnnamed(driver, [&](const GraphExec::Step& step) {
    return step.operation.type == CU_GRAPH_NODE_TYPE_KERNEL &&
           describedAs<LaunchRequest>(step.operation, CU_GRAPH_NODE_TYPE_KERNEL).function->module.get() == &module;
  });
}

void requireEventUnnamed(Driver& driver, const Event& event) {
  requireUnnamed(driver, [&](const GraphExec::Step& step) { return step.event.get() == &event; });
}

void requireMemoryUnnamed(Driver& driver, CUdeviceptr address, uint64_t bytes) {
  requireUnnamed(driver, [&](const GraphExec::Step& step) {
    if (step.operation.type == CU_GRAPH_NODE_TYPE_MEMSET)
      return touches(address, bytes, describedAs<CUDA_MEMSET_NODE_PARAMS>(step.operation, step.operation.type).dst, 1);
    if (step.operation.type != CU_GRAPH_NODE_TYPE_MEMCPY) return false;
    auto& copy = describedAs<CUDA_MEMCPY3D>(step.operation, step.operation.type);
    return touches(address, bytes, copy.srcDevice, copy.WidthInBytes) || touches(address, bytes, copy.dstDevice, copy.WidthInBytes);
  });
}

}  // namespace vgpu::emulator::api
