// The driver's implementation of a kernel's calls about graphs.
#pragma once

#include "stub/emulator/stream/device-graph-launch.h"

namespace vgpu::emulator::api {

// For one launch of a kernel, in the graph whose step the calling thread runs, if any. Any thread may call.
class KernelGraphs : public DeviceGraphs {
 public:
  explicit KernelGraphs(Context& context) : context(context), environment(GraphEnvironment::current()) {}
  uint64_t current() const override { return environment ? environment->handle() : 0; }
  Answer launch(uint64_t graph, GraphStream stream) override;
  Answer change(uint64_t node, const NodeChange& change, bool isMade) override;

 private:
  Context& context;
  GraphEnvironment* const environment;
};

}  // namespace vgpu::emulator::api
