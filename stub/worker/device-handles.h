// The handles by which kernels name graphs that they launch and nodes that they change: addresses in the driver's private memory, chosen by
// the driver. A program keeps them in its own memory, so they must be the same after a resume.
//
// Observed with driver 580.159 (docs/facts.md): the driver reuses a freed handle before it makes a new one. So to get a particular handle,
// graphs or nodes ("spares") are made until the driver returns it; that spare is freed just before the wanted object is made. Spares with
// other handles stay until then, so that no other handle is free; while recipes are executed they stay longer, because a later recipe may
// need one of their handles.
//
// Belongs to one GPU; used by its thread, and while no calls are executed. A snapshot keeps the handles (graph-restore.h).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace vgpu::stub {

class Execution;

// A kernel node in the form that the driver's calls take; valid as long as what it points to.
struct KernelNode {
  CUDA_KERNEL_NODE_PARAMS params;
  std::span<CUlaunchAttribute> attributes;

  bool isDeviceUpdatable() const;
};
// Owns a copy of a kernel node and of all that it points to.
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

// The graph, and the nodes before it, to which a node is added.
struct NodePlace {
  CUgraph graph;
  const CUgraphNode* before;
  size_t count;
};

class DeviceHandles {
 public:
  // Sets the handle that the graph with this virtual handle must get when its recipe is executed; 0: any.
  void expect(uint64_t graph, uint64_t address) { expected[graph] = address; }
  uint64_t expectedOf(uint64_t graph) const;

  // Instantiates a graph for device launch, with the handle `wanted` if that is not 0. CUDA_ERROR_NOT_SUPPORTED if the driver does not
  // return that handle; else the driver's result, also stored in `params`.
  CUresult instantiate(Execution& on, CUgraph graph, uint64_t wanted, CUDA_GRAPH_INSTANTIATE_PARAMS& params, CUgraphExec& made);
  // Adds a device-updatable node; `address`: in, the wanted handle or 0 for any; out, the node's handle. The same results.
  CUresult add(Execution& on, const NodePlace& place, KernelNode node, CUgraphNode& made, uint64_t& address);
  // Makes a graph with that node alone, and with that handle.
  CUresult hold(Execution& on, KernelNode node, uint64_t address, CUgraph& made);
  // `graph`, which has such a node alone, is no longer needed: its handle may go to the next node.
  void release(uint64_t address, CUgraph graph) { spareNodes[address] = graph; }

  // Destroys the spares, unless recipes are being executed.
  void endUnneeded(Execution& on) {
    if (expected.empty()) endSpares(on);
  }
  // Called after all recipes have been executed.
  void endSpares(Execution& on);
  // The spares have ended with the context.
  void forget() { *this = {}; }

 private:
  CUresult settleGraph(Execution& on, uint64_t wanted);
  CUresult makeSpareNode(Execution& on, KernelNode node);

  std::unordered_map<uint64_t, uint64_t> expected;
  std::map<uint64_t, CUgraphExec> spareGraphs;  // by handle
  std::map<uint64_t, CUgraph> spareNodes;       // graphs with one node, by the node's handle
};

DeviceHandles& deviceHandles(Execution& on);

// Adds a kernel node with its attributes; a device-updatable node's handle is then among them.
CUresult addKernelNode(Execution& on, const NodePlace& place, const KernelNode& node, CUgraphNode& made);

}  // namespace vgpu::stub
