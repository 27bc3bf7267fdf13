// An executable graph whose nodes do a run of work one after the other, and what each of them does now.
//
// Owned by the GPU's FoldedGraphs, and used by the thread of that GPU in its context. Made of explicit nodes: a capture would
// bring the rules of the legacy default stream with it. It names objects: it must end before them (FoldedGraphs::forget).
#pragma once

#include <memory>
#include <vector>

#include "cuda-kinds.h"
#include "stub/driver/driver.h"
#include "stub/gpu/folded-work.h"

namespace vgpu::stub {

class FoldedGraph {
 public:
  // CUDA's answer. Without success `made` stays empty.
  static CUresult make(const Driver& driver, CUcontext context, FoldedRun run, std::unique_ptr<FoldedGraph>& made);
  // A launch that is under way goes on; the driver frees what it needs behind it (cuda.h, cuGraphExecDestroy).
  ~FoldedGraph();
  FoldedGraph(const FoldedGraph&) = delete;
  FoldedGraph& operator=(const FoldedGraph&) = delete;

  // Has it do `run`, which has the shape that it was made with. Sets what differs from what it does now. CUDA's answer; after an
  // error nobody knows what it does.
  CUresult set(FoldedRun run);
  // Whether it does just that, except for the sequence numbers of records.
  bool does(FoldedRun run) const;
  CUresult launch(CUstream stream);

  size_t size() const { return nodes.size(); }
  // Whether one of its nodes, or the node that it was made from, names the object. Of a lease or host lease: whether it copies or
  // fills memory of that kind at all.
  bool names(api::Kind kind, uint64_t handle) const;

 private:
  struct Names {
    uint64_t object = 0, module = 0;  // a function and its module, or an event
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

// Letters of FoldedWork::shape.
constexpr char kernelShape = 'k', recordShape = 'r';
// Of a copy, by whether its ends are in memory of the host; of a fill, by the size of its elements.
constexpr char copyShape(bool toHost, bool fromHost) { return static_cast<char>('A' + 2 * toHost + fromHost); }
constexpr char fillShape(uint32_t elementBytes) { return static_cast<char>('0' + elementBytes); }

}  // namespace vgpu::stub
