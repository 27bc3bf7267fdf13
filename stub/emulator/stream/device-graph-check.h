// What a graph must not contain if kernels launch it, or if its kernels launch graphs (cuda.h, cuGraphInstantiateWithParams).
#pragma once

#include <optional>

#include "stub/emulator/stream/graph.h"

namespace vgpu::emulator::api {

struct InstantiateProblem {
  CUgraphInstantiateResult result;
  CUgraphNode node;  // null: the problem is not about one node
};

// Nothing if there is no problem.
std::optional<InstantiateProblem> findProblem(const GraphExec&);

}  // namespace vgpu::emulator::api
