// Kernel nodes that other kernels may change (CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE). What such a node launches is stored here,
// outside its graph: an upload, or a launch by the host, stores what the host has set since the last one, and kernels change it.
//
// Lives as long as the graph or its executable has the node. Any thread may call; the node's mutex, a leaf, guards the uploaded state.
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
  bool instantiated = false;  // it is in an executable graph: guarded by Driver::graphMutex

  // Sets what the node launches in an executable graph until a kernel or another upload changes it. After the graph's `end`, kernels cannot
  // change the node until the next upload.
  void upload(std::shared_ptr<const GraphEnd> end, LaunchRequest request, bool enabled);
  DeviceGraphs::Answer change(const Context& by, const NodeChange& change, bool isMade);
  // The launch to make now; nothing if the node is disabled.
  std::optional<LaunchRequest> current() const;

 private:
  struct State {
    LaunchRequest request;
    bool enabled;
    std::shared_ptr<const GraphEnd> end;  // of the graph to which it belongs
  };
  DeviceNodes& all;
  mutable std::mutex mutex;
  std::optional<State> state;  // set by the latest upload
};

// The device-updatable node of an operation; nullptr if there is none.
std::shared_ptr<DeviceNode> deviceNodeOf(const Operation&);
// The same operation, without device-updatable node.
Operation withoutDeviceNode(const Operation&);

}  // namespace vgpu::emulator::api
