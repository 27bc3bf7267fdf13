// Which memory of allocation nodes a fill or a copy in a graph may name: any that the graph with the allocation node does not free, and
// else that of its own graph alone. What an H100's driver (580.159) answers: tests/programs/conformance/golden/owned-memory.txt.
#pragma once

#include <memory>

#include "intercept/session/graph/graph-memory.h"
#include "intercept/session/graph/node-work.h"

namespace vgpu::client {

// Whether a node of that graph may do this; of nullptr, memory that is no graph's own.
bool mayName(const GraphMemories& memories, const std::shared_ptr<const Conditions>& graph, const NodeWork& work);
// Whether each end stays in memory of allocation nodes, a graph's own or not, or stays elsewhere: no copy of an executable graph becomes
// another.
bool isInSameKind(const GraphMemories& memories, const CopyWork& now, const CopyWork& wanted);

}  // namespace vgpu::client
