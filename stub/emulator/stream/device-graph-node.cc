#include "stub/emulator/stream/device-graph-node.h"

#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {

std::shared_ptr<DeviceNode> DeviceNodes::make() {
  auto made = std::make_shared<DeviceNode>(*this, handles.take());
  std::lock_guard lock(mutex);
  nodes[made->handle] = made;
  return made;
}

std::shared_ptr<DeviceNode> DeviceNodes::find(uint64_t handle) const {
  std::lock_guard lock(mutex);
  auto at = nodes.find(handle);
  return at == nodes.end() ? nullptr : at->second.lock();
}

DeviceNode::~DeviceNode() {
  {
    std::lock_guard lock(all.mutex);
    all.nodes.erase(handle);
  }
  all.handles.give(handle);
}

void DeviceNode::upload(std::shared_ptr<const GraphEnd> end, LaunchRequest request, bool enabled) {
  request.device = nullptr;  // null in the stored request: it would refer to this node
  std::lock_guard lock(mutex);
  state = State{std::move(request), enabled, std::move(end)};
}

DeviceGraphs::Answer DeviceNode::change(const Context& by, const NodeChange& change, bool isMade) {
  std::unique_lock lock(mutex);
  if (!state || state->end->hasCome()) return DeviceGraphs::Answer::refused;
  if (&state->request.function->context.device != &by.device) return DeviceGraphs::Answer::stranger;
  switch (change.field) {
    case NodeChange::Field::grid: {
      LaunchRequest changed = state->request;
      lock.unlock();
      changed.grid = change.grid;
      if (enterAlways([&] { checkLaunch(changed); }) != CUDA_SUCCESS) return DeviceGraphs::Answer::refused;
      lock.lock();
      if (isMade) state->request.grid = change.grid;
      break;
    }
    case NodeChange::Field::parameter: {
      std::vector<std::byte>& all = state->request.parameters;
      if (change.offset > all.size() || change.bytes.size() > all.size() - change.offset) return DeviceGraphs::Answer::refused;
      if (isMade) std::ranges::copy(change.bytes, all.begin() + static_cast<std::ptrdiff_t>(change.offset));
      break;
    }
    case NodeChange::Field::enabled:
      if (isMade) state->enabled = change.enabled;
      break;
  }
  return DeviceGraphs::Answer::done;
}

std::optional<LaunchRequest> DeviceNode::current() const {
  std::lock_guard lock(mutex);
  return state && state->enabled ? std::optional(state->request) : std::nullopt;
}

std::shared_ptr<DeviceNode> deviceNodeOf(const Operation& operation) {
  if (operation.type != CU_GRAPH_NODE_TYPE_KERNEL) return nullptr;
  return describedAs<LaunchRequest>(operation, operation.type).device;
}

Operation withoutDeviceNode(const Operation& operation) {
  if (!deviceNodeOf(operation)) return operation;
  LaunchRequest request = describedAs<LaunchRequest>(operation, operation.type);
  request.device = nullptr;
  return launchOperation(std::move(request));
}

}  // namespace vgpu::emulator::api
