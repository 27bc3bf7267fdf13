// Which memory of allocation nodes a fill or copy in a graph may name: memory that the graph with the allocation node does not free;
// otherwise only memory of its own graph. As an H100's driver (580.159) behaves: tests/programs/conformance/golden/owned-memory.txt.
#pragma once

#include <memory>

#include "intercept/session/graph/graph-memory.h"
#include "intercept/session/graph/node-work.h"

namespace vgpu::client {

// Whether a node of `graph` may have this work. nullptr: only memory that is no graph's own.
bool mayName(const GraphMemories& memories, const std::shared_ptr<const Conditions>& graph, const NodeWork& work);
// Whether each end stays inside or outside of allocation nodes' memory: an executable graph's copy cannot change that.
bool isInSameKind(const GraphMemories& memories, const CopyWork& now, const CopyWork& wanted);

}  // namespace vgpu::client
