// CUDA graph operations by kernels: launching a graph, and changing device-updatable nodes (CUDA Programming Guide, "Device Graph Launch"
// and "Device-updatable kernel nodes").
//
// Called by many threads at once while kernels run. Owned by the driver; keeps nothing after a launch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace vgpu::emulator {

// The streams into which a kernel may launch a graph: cudaStreamGraphTailLaunch and the others.
enum class GraphStream : uint64_t { tail = uint64_t{1} << 56, fireAndForget = uint64_t{2} << 56, sibling = uint64_t{3} << 56 };

struct NodeChange {
  enum class Field : uint32_t { grid = 1, parameter, enabled };  // numbered as cudaGraphKernelNodeField
  Field field;
  std::array<uint32_t, 3> grid{};
  uint64_t offset = 0;  // of `bytes` in the kernel's parameters
  std::vector<std::byte> bytes;
  bool enabled = false;
};

class DeviceGraphs {
 public:
  // stranger: the driver has given no graph or node of this device such a handle.
  enum class Answer { done, refused, stranger };
  virtual ~DeviceGraphs() = default;
  // The handle of the graph that has launched the kernel; 0 if none has, or if kernels cannot launch it.
  virtual uint64_t current() const = 0;
  virtual Answer launch(uint64_t graph, GraphStream stream) = 0;
  // Makes the change, or (isMade is false) only returns whether it is possible.
  virtual Answer change(uint64_t node, const NodeChange& change, bool isMade) = 0;
};

}  // namespace vgpu::emulator
