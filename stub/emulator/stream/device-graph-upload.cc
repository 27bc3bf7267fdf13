// Uploads: store, for the use by kernels, a graph's steps, if kernels can launch it, and what the host has set of device-updatable nodes.
#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/device-graph-launch.h"
#include "stub/emulator/stream/device-graph-node.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {

std::function<void()> GraphExec::changes() {
  struct Change {
    std::shared_ptr<DeviceNode> node;
    LaunchRequest request;
    bool enabled;
  };
  std::vector<Change> set;
  forSteps([&](const Step& step) {
    std::shared_ptr<DeviceNode> node = step.changed ? deviceNodeOf(step.operation) : nullptr;
    if (!node) return;
    set.push_back({node, describedAs<LaunchRequest>(step.operation, CU_GRAPH_NODE_TYPE_KERNEL), step.enabled});
  });
  std::shared_ptr<const std::vector<Step>> copy = isForKernels() ? std::make_shared<const std::vector<Step>>(steps) : nullptr;
  if (set.empty() && !copy) return {};
  return [self = shared_from_this(), set = std::move(set), copy = std::move(copy)] {
    for (const Change& each : set) each.node->upload(self->end, each.request, each.enabled);
    if (!copy) return;
    std::lock_guard lock(self->uploadedMutex);
    self->uploaded = copy;
  };
}

// The action before a launch's steps: an upload, and the initial values of conditions.
Action GraphExec::beginning(const std::shared_ptr<GraphEnvironment>& environment) {
  std::function<void()> write = changes();
  if (!write && !environment && values->empty()) return {};
  return [write = std::move(write), environment, values = values] {
    if (write) write();
    if (environment) environment->begin();
    values->begin();
    return Outcome::finished;
  };
}

void GraphExec::upload(Stream& stream) {
  stream.refuseCapturing();
  std::lock_guard lock(mutex);
  std::function<void()> write = changes();
  if (!write) return;
  auto action = [write = std::move(write)] { return write(), Outcome::finished; };
  last = stream.submit({.weight = Weight::light, .action = std::move(action)}, std::span(&last, 1));
  haveChanged();
}

void GraphExec::close() {
  std::lock_guard lock(mutex);
  {
    std::lock_guard graphs(driver.graphMutex);
    forSteps([&](const Step& step) {
      if (std::shared_ptr<DeviceNode> node = deviceNodeOf(step.operation)) node->instantiated = false;
    });
  }
  if (!last) return;  // nothing of it was ever uploaded
  end->last = last;
  end->destroyed.store(true, std::memory_order_release);
}

}  // namespace vgpu::emulator::api
