// Device runtime functions for graphs.
#include "stub/emulator/ptx/run/device-call.h"
#include "stub/emulator/ptx/run/device-graphs.h"

namespace vgpu::emulator {
namespace {

using Field = NodeChange::Field;

// The memory layout of a cudaGraphKernelNodeUpdate: its union has three words, of which a grid uses one and a half.
struct UpdateText {
  uint64_t node;
  uint32_t field, unused;
  std::array<uint64_t, 3> data;
};
static_assert(sizeof(UpdateText) == sizeof(cudaGraphKernelNodeUpdate));

// Nothing, after a fault, if memory at the handle cannot be read: NVIDIA's device runtime reads there, and faults on an H100 (driver
// 580.159). Memory that is not a graph's gives the error of an invalid handle.
DeviceAnswer errorOf(DeviceCall& call, DeviceGraphs::Answer answered, uint64_t handle) {
  uint8_t read = 0;
  switch (answered) {
    case DeviceGraphs::Answer::done:
      return cudaSuccess;
    case DeviceGraphs::Answer::refused:
      return cudaErrorInvalidValue;
    case DeviceGraphs::Answer::stranger:
      break;
  }
  return call.load(handle, read) ? DeviceAnswer(cudaErrorInvalidValue) : std::nullopt;
}

// cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
DeviceAnswer launchGraph(DeviceCall& call) {
  const auto stream = static_cast<GraphStream>(call.argument(1));
  if (stream != GraphStream::tail && stream != GraphStream::fireAndForget && stream != GraphStream::sibling)
    return cudaErrorInvalidValue;
  return errorOf(call, call.launch().graphs->launch(call.argument(0), stream), call.argument(0));
}

// Changes a parameter to the `bytes` bytes at `from`; an error if the size is not valid, nothing after a fault.
DeviceAnswer changeParameter(DeviceCall& call, uint64_t node, uint64_t offset, uint64_t from, uint64_t bytes, bool isMade = true) {
  if (bytes > mostParameterBytes) return cudaErrorInvalidValue;
  NodeChange change{.field = Field::parameter, .offset = offset, .bytes = std::vector<std::byte>(bytes)};
  for (uint64_t i = 0; i < bytes; ++i)
    if (!call.load(from + i, change.bytes[i])) return std::nullopt;
  return errorOf(call, call.launch().graphs->change(node, change, isMade), node);
}

DeviceAnswer changeNode(DeviceCall& call, uint64_t node, const NodeChange& change, bool isMade = true) {
  return errorOf(call, call.launch().graphs->change(node, change, isMade), node);
}

// cudaError_t cudaGraphKernelNodeSetParam(cudaGraphDeviceNode_t node, size_t offset, const void* value, size_t size)
DeviceAnswer setParameter(DeviceCall& call) {
  return changeParameter(call, call.argument(0), call.argument(1), call.argument(2), call.argument(3));
}

// cudaError_t cudaGraphKernelNodeSetEnabled(cudaGraphDeviceNode_t node, bool enable)
DeviceAnswer setEnabled(DeviceCall& call) {
  return changeNode(call, call.argument(0), {.field = Field::enabled, .enabled = (call.argument(1) & 0xff) != 0});
}

// cudaError_t cudaGraphKernelNodeSetGridDim(cudaGraphDeviceNode_t node, dim3 gridDim)
DeviceAnswer setGrid(DeviceCall& call) {
  return changeNode(call, call.argument(0), {.field = Field::grid, .grid = call.dimensions(1)});
}

DeviceAnswer apply(DeviceCall& call, const UpdateText& update, bool isMade) {
  switch (static_cast<Field>(update.field)) {
    case Field::grid: {
      NodeChange change{.field = Field::grid};
      std::memcpy(change.grid.data(), update.data.data(), sizeof change.grid);
      return changeNode(call, update.node, change, isMade);
    }
    case Field::parameter:
      return changeParameter(call, update.node, update.data[1], update.data[0], update.data[2], isMade);
    case Field::enabled:
      return changeNode(call, update.node, {.field = Field::enabled, .enabled = static_cast<uint32_t>(update.data[0]) != 0}, isMade);
  }
  return cudaErrorInvalidValue;
}

// cudaError_t cudaGraphKernelNodeUpdatesApply(const cudaGraphKernelNodeUpdate* updates, size_t count). If one is not valid, none is made.
DeviceAnswer applyAll(DeviceCall& call) {
  for (const bool isMade : {false, true})
    for (uint64_t i = 0; i < call.argument(1); ++i) {
      UpdateText update{};
      if (!call.load(call.argument(0) + i * sizeof update, update)) return std::nullopt;
      const DeviceAnswer applied = apply(call, update, isMade);
      if (!applied || *applied != cudaSuccess) return applied;
    }
  return cudaSuccess;
}

template <DeviceFunction function>
const Inst* answerOfGraphs(Warp& warp, const Inst* inst) {
  if (!warp.block().launch().graphs)
    return warp.fault(Fault::Kind::notSupported, inst, warp.firstActive(),
                      "a graph call by a kernel: this launch does not allow such calls");
  return answer<function>(warp, inst);
}

constexpr BuiltinRow graphRows[] = {
    {graphLaunchCall, 2, 1, answerOfGraphs<launchGraph>},
    {"cudaGraphKernelNodeSetParam", 4, 1, answerOfGraphs<setParameter>},
    {"cudaGraphKernelNodeSetEnabled", 2, 1, answerOfGraphs<setEnabled>},
    {"cudaGraphKernelNodeSetGridDim", 2, 1, answerOfGraphs<setGrid>},
    {"cudaGraphKernelNodeUpdatesApply", 2, 1, answerOfGraphs<applyAll>},
};

}  // namespace

std::span<const BuiltinRow> deviceGraphBuiltins() { return graphRows; }

}  // namespace vgpu::emulator
