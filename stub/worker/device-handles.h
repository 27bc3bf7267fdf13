// The handles by which kernels know graphs that they launch and nodes that they change. The driver makes them up: addresses in memory
// that it has for itself. A program keeps them in its own memory, so they must be the same in the worker in which the session goes on.
//
// Observed with driver 580.159 (docs/facts.md): a handle that was given back is given again, before one that never was. So to have one again,
// others are made until it comes ("spares"), and it is given back before whatever is to have it is made. Spares that have other handles
// stay until then, so that no other is free; while recipes are executed they stay longer, because a graph that is still to come may have
// had one of theirs.
//
// Of one GPU; used by its thread, and while no calls are executed. A snapshot keeps the handles (graph-restore.h).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace vgpu::stub {

class Execution;

// A kernel's node, as the driver's calls take it, for as long as what it points to.
struct KernelNode {
  CUDA_KERNEL_NODE_PARAMS params;
  std::span<CUlaunchAttribute> attributes;

  bool isDeviceUpdatable() const;
};
// The same with all that it points to.
class KeptKernelNode {
 public:
  KeptKernelNode() = default;
  KeptKernelNode(const KernelNode& node, std::span<const unsigned char> parameters, std::span<const uint32_t> offsets);
  KernelNode get();

 private:
  CUDA_KERNEL_NODE_PARAMS params{};
  std::vector<CUlaunchAttribute> attributes;
  std::vector<unsigned char> parameters;
  std::vector<uint32_t> offsets;
  std::vector<void*> pointers;
};

// Where a node is added to a graph.
struct NodePlace {
  CUgraph graph;
  const CUgraphNode* before;
  size_t count;
};

class DeviceHandles {
 public:
  // What the handle of a graph, by its virtual handle, is to be when its recipe is executed; 0: any.
  void expect(uint64_t graph, uint64_t address) { expected[graph] = address; }
  uint64_t expectedOf(uint64_t graph) const;

  // Instantiates a graph for launches by kernels, with that handle if it is not 0. CUDA_ERROR_NOT_SUPPORTED if the driver gives it to
  // nobody; else the driver's answer, which is in `params` too.
  CUresult instantiate(Execution& on, CUgraph graph, uint64_t wanted, CUDA_GRAPH_INSTANTIATE_PARAMS& params, CUgraphExec& made);
  // Adds a node that kernels may change; `address`: wanted, if it is not 0, then given. The same answers.
  CUresult add(Execution& on, const NodePlace& place, KernelNode node, CUgraphNode& made, uint64_t& address);
  // A graph of such a node alone, with that handle.
  CUresult hold(Execution& on, KernelNode node, uint64_t address, CUgraph& made);
  // `graph`, of such a node alone, is needed no more: its handle may be given to the next node.
  void release(uint64_t address, CUgraph graph) { spareNodes[address] = graph; }

  // Ends spares, unless recipes are being executed.
  void endUnneeded(Execution& on) {
    if (expected.empty()) endSpares(on);
  }
  // All recipes have been executed.
  void endSpares(Execution& on);
  // They have ended with the context.
  void forget() { *this = {}; }

 private:
  CUresult settleGraph(Execution& on, uint64_t wanted);
  CUresult makeSpareNode(Execution& on, KernelNode node);

  std::unordered_map<uint64_t, uint64_t> expected;
  std::map<uint64_t, CUgraphExec> spareGraphs;  // by handle
  std::map<uint64_t, CUgraph> spareNodes;       // graphs of one node, by its handle
};

DeviceHandles& deviceHandles(Execution& on);

// Adds a kernel's node with its attributes; the handle of one that kernels may change is among them then.
CUresult addKernelNode(Execution& on, const NodePlace& place, const KernelNode& node, CUgraphNode& made);

}  // namespace vgpu::stub
