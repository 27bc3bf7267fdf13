// An executable graph whose nodes do a run of work one after the other, with the present parameters of each node.
//
// Owned by the GPU's FoldedGraphs, and used by the thread of that GPU in its context. Made of explicit nodes, because a capture would
// follow the rules of the legacy default stream. It names objects, so it must end before they do (FoldedGraphs::forget).
#pragma once

#include <memory>
#include <vector>

#include "cuda-kinds.h"
#include "stub/driver/driver.h"
#include "stub/gpu/folded-work.h"

namespace vgpu::stub {

class FoldedGraph {
 public:
  // CUDA's result. On failure `made` stays empty.
  static CUresult make(const Driver& driver, CUcontext context, FoldedRun run, std::unique_ptr<FoldedGraph>& made);
  // A launch in progress goes on; the driver frees its resources afterwards (cuda.h, cuGraphExecDestroy).
  ~FoldedGraph();
  FoldedGraph(const FoldedGraph&) = delete;
  FoldedGraph& operator=(const FoldedGraph&) = delete;

  // Makes the graph do `run`, which must have the shape with which it was made. Sets only nodes that differ. CUDA's result; after an error
  // the graph's state is unknown.
  CUresult set(FoldedRun run);
  // Whether the graph does exactly this run, apart from the sequence numbers of records.
  bool does(FoldedRun run) const;
  CUresult launch(CUstream stream);

  size_t size() const { return nodes.size(); }
  // Whether one of its nodes, now or when it was made, names the object. For a lease or host lease: whether any node copies or fills memory
  // of that kind.
  bool names(api::Kind kind, uint64_t handle) const;

 private:
  struct Names {
    uint64_t object = 0, module = 0;  // the function and its module, or the event
  };
  struct Node {
    CUgraphNode node = nullptr, word = nullptr;  // word: the write before a record
    char shape = 0;
    std::vector<capnp::word> words;  // FoldedWork::words
    Names made, now;
  };

  FoldedGraph(const Driver& driver, CUcontext context) : driver(driver), context(context) {}
  CUresult add(const FoldedWork& work, CUgraphNode& last);
  CUresult setNode(Node& node, const FoldedWork& work);
  static bool isSame(const Node& node, const FoldedWork& work);
  static void note(Node& node, const FoldedWork& work);

  const Driver& driver;
  const CUcontext context;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  std::vector<Node> nodes;
};

// Values of FoldedWork::shape.
constexpr char kernelShape = 'k', recordShape = 'r';
// For a copy, by whether its ends are in host memory; for a fill, by the size of its elements.
constexpr char copyShape(bool toHost, bool fromHost) { return static_cast<char>('A' + 2 * toHost + fromHost); }
constexpr char fillShape(uint32_t elementBytes) { return static_cast<char>('0' + elementBytes); }

}  // namespace vgpu::stub
