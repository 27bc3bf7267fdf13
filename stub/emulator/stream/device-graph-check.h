// What a graph must not have that kernels are to launch, or whose kernels launch graphs (cuda.h, cuGraphInstantiateWithParams).
#pragma once

#include <optional>

#include "stub/emulator/stream/graph.h"

namespace vgpu::emulator::api {

struct InstantiateProblem {
  CUgraphInstantiateResult result;
  CUgraphNode node;  // null: of no node alone
};

// Nothing if there is none.
std::optional<InstantiateProblem> findProblem(const GraphExec&);

}  // namespace vgpu::emulator::api
