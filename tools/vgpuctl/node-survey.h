// The capacity of the known nodes (tools/common/known-nodes.h). All are asked at the same time, each by a separate process, because a
// connection to a host that has vanished blocks where nothing can interrupt it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/known-nodes.h"

namespace vgpu::ctl {

struct NodeState {
  KnownNode node;
  std::string problem;                           // why it does not answer; the other members are empty then
  std::string device;                            // of its first GPU
  std::vector<uint64_t> memoryBytes, freeBytes;  // by GPU
  unsigned sessions = 0, running = 0;
  bool isEnding = false;  // it accepts no more sessions
};
// Why no session can go to the node; empty if one can.
std::string whyLeftOut(const NodeState& node);

// In the order of the file. Throws kj::Exception if no nodes are known, saying in which file they are listed.
std::vector<NodeState> surveyNodes(std::chrono::seconds limit);

// The best node for a program that needs so many GPUs. Of the nodes that have enough, the one whose first GPUs (which a program uses first)
// have the most free memory each, then the one with the fewest running sessions. Null if there is none.
const NodeState* bestNode(const std::vector<NodeState>& nodes, unsigned gpus);

}  // namespace vgpu::ctl
