// Nodes of kernels that other kernels may change (CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE). What such a node launches is kept
// beside its graph: an upload, or a launch by the host, writes what the host has set since the one before, and kernels change it.
//
// Lasts as long as the graph or its executable has the node. Any thread may call; what is uploaded is guarded by the node's mutex, a
// leaf.
#pragma once

#include <optional>

#include "stub/emulator/ptx/run/device-graphs.h"
#include "stub/emulator/stream/device-graph-handles.h"
#include "stub/emulator/stream/graph.h"
#include "stub/emulator/stream/launch.h"

namespace vgpu::emulator::api {

class DeviceNode {
 public:
  DeviceNode(DeviceNodes& all, uint64_t handle) : handle(handle), all(all) {}
  ~DeviceNode();
  DeviceNode(const DeviceNode&) = delete;

  const uint64_t handle;
  bool instantiated = false;  // an executable graph has it: guarded by Driver::graphMutex

  // What the next launch of the node, in an executable graph, does until it is changed. When that graph's end has come, the node cannot
  // be changed until another is uploaded.
  void upload(std::shared_ptr<const GraphEnd> end, LaunchRequest request, bool enabled);
  DeviceGraphs::Answer change(const Context& by, const NodeChange& change, bool isMade);
  // The request to launch now; nothing if the node is disabled.
  std::optional<LaunchRequest> current() const;

 private:
  struct State {
    LaunchRequest request;
    bool enabled;
    std::shared_ptr<const GraphEnd> end;  // of the graph that it belongs to
  };
  DeviceNodes& all;
  mutable std::mutex mutex;
  std::optional<State> state;  // that was uploaded last
};

// The node of an operation; nullptr if kernels cannot change it.
std::shared_ptr<DeviceNode> deviceNodeOf(const Operation&);
// The same operation, which they cannot change.
Operation withoutDeviceNode(const Operation&);

}  // namespace vgpu::emulator::api
