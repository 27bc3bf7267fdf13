// The frames of an executable graph's nodes: added to the worker's graph, or set in it.
#pragma once

#include <vector>

#include "intercept/session/call.h"
#include "intercept/session/graph/conditions.h"
#include "intercept/session/graph/node-work.h"

namespace vgpu::client {

// Of the nodes that are added next: a body of a conditional node of the worker's, or the graph itself.
struct WorkerBody {
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t node = none, body = 0;
};
// The beginning and the end of a graph of the worker's, in the ring of the device of its handle.
CUresult sendBegin(Thread& thread, uint64_t graph);
CUresult sendEnd(Thread& thread, uint64_t graph);
CUresult sendBody(Thread& thread, uint64_t graph, const WorkerBody& body);
CUresult sendConditions(Thread& thread, uint64_t graph, const std::vector<Condition>& conditions);

// A node of the worker's: its number in its graph, those that it comes behind (a node that is set keeps them), and its device.
struct WorkerNode {
  uint64_t graph;
  uint32_t number;
  std::vector<uint32_t> before;
  bool isSet = false;
  unsigned device = 0;
  bool isOther = false;  // set to another function: the driver says whether it takes that
};

// An edge with a port, from a kernel's node, by the numbers of nodes.
struct WorkerEdge {
  uint32_t from, to;
  CUgraphEdgeData data;
};
// `device`: of the node behind it.
CUresult sendEdge(Thread& thread, uint64_t graph, unsigned device, const WorkerEdge& edge);

// What a node of ours does with its completion word.
enum class OwnWords : uint32_t { none, signals, signalsAndWaits };

CUresult sendKernel(Thread& thread, const WorkerNode& node, const KernelWork& work);
CUresult sendCopy(Thread& thread, const WorkerNode& node, const CopyEnd& to, const CopyEnd& from, const BoxSize& size);
CUresult sendFill(Thread& thread, const WorkerNode& node, const FillWork& work);
CUresult sendEvent(Thread& thread, const WorkerNode& node, const EventWork& work);
CUresult sendConditional(Thread& thread, const WorkerNode& node, const ConditionalWork& work);
CUresult sendMemOps(Thread& thread, const WorkerNode& node, const MemOpsWork& work);
CUresult sendCaptured(Thread& thread, const WorkerNode& node, const LibraryWork& work);
// A node that does nothing else, or nothing at all.
CUresult sendWords(Thread& thread, const WorkerNode& node, OwnWords does, uint32_t word = 0);

}  // namespace vgpu::client
