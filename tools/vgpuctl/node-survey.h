// What the known nodes (tools/common/known-nodes.h) have to give. All are asked at once, each by a process of its own, because
// whom a node's host has vanished from waits for it where nothing can interrupt.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/known-nodes.h"

namespace vgpu::ctl {

struct NodeState {
  KnownNode node;
  std::string problem;                           // why it does not answer; the rest is empty then
  std::string device;                            // of its first GPU
  std::vector<uint64_t> memoryBytes, freeBytes;  // GPU by GPU
  unsigned sessions = 0, running = 0;
  bool isEnding = false;  // it takes no more sessions
};
// Why no session can go there; empty if one can.
std::string whyLeftOut(const NodeState& node);

// In the order of the file. Throws kj::Exception if no nodes are known, saying where they are written down.
std::vector<NodeState> surveyNodes(std::chrono::seconds limit);

// The best for a program that needs so many GPUs: of those that have them the one with the most free memory on each of its first
// ones, which a program begins with, then the one with the fewest sessions that run. Nothing if there is none.
const NodeState* bestNode(const std::vector<NodeState>& nodes, unsigned gpus);

}  // namespace vgpu::ctl
