// The frames of an executable graph's nodes: added to the worker's graph, or set in it.
#pragma once

#include <vector>

#include "intercept/session/call.h"
#include "intercept/session/graph/conditions.h"
#include "intercept/session/graph/node-work.h"

namespace vgpu::client {

// The body to which the next nodes are added: of a conditional node of the worker's, or the graph itself.
struct WorkerBody {
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t node = none, body = 0;
};
// Starts and ends a graph of the worker's, in the ring of its handle's device.
CUresult sendBegin(Thread& thread, uint64_t graph);
CUresult sendEnd(Thread& thread, uint64_t graph);
CUresult sendBody(Thread& thread, uint64_t graph, const WorkerBody& body);
CUresult sendConditions(Thread& thread, uint64_t graph, const std::vector<Condition>& conditions);

// A node of the worker's: its number in its graph, its dependencies (a set node keeps its own), and its device.
struct WorkerNode {
  uint64_t graph;
  uint32_t number;
  std::vector<uint32_t> before;
  bool isSet = false;
  unsigned device = 0;
  bool isOther = false;  // set to another function: the driver decides whether it accepts that
};

// An edge with a port, from a kernel node, by node numbers.
struct WorkerEdge {
  uint32_t from, to;
  CUgraphEdgeData data;
};
// `device`: of the dependent node.
CUresult sendEdge(Thread& thread, uint64_t graph, unsigned device, const WorkerEdge& edge);

// How a node of ours uses its completion word.
enum class OwnWords : uint32_t { none, signals, signalsAndWaits };

CUresult sendKernel(Thread& thread, const WorkerNode& node, const KernelWork& work);
CUresult sendCopy(Thread& thread, const WorkerNode& node, const CopyEnd& to, const CopyEnd& from, const BoxSize& size);
CUresult sendFill(Thread& thread, const WorkerNode& node, const FillWork& work);
CUresult sendEvent(Thread& thread, const WorkerNode& node, const EventWork& work);
CUresult sendConditional(Thread& thread, const WorkerNode& node, const ConditionalWork& work);
CUresult sendMemOps(Thread& thread, const WorkerNode& node, const MemOpsWork& work);
CUresult sendCaptured(Thread& thread, const WorkerNode& node, const LibraryWork& work);
// A node that only does that, or nothing.
CUresult sendWords(Thread& thread, const WorkerNode& node, OwnWords does, uint32_t word = 0);

}  // namespace vgpu::client
