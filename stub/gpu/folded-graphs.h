// The executable graphs of one GPU, kept by stream and shape, and used in turn.
//
// Owned by the GPU, and used by its thread. A launch of a graph waits for the graph's previous launch, so at least two graphs serve a run
// that repeats. A graph serves only one stream, because otherwise one stream would wait for another. A graph ends before the objects that
// it names: code that destroys or changes an object calls forget() first. A suspend, a fault, and lack of memory drop all graphs; they are
// made again when needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stub/gpu/folded-graph.h"
#include "stub/gpu/primary-context.h"

namespace vgpu::stub {

// What the planner (RunLengths) knows about a run.
struct FoldedRunHints {
  unsigned copies = 2;    // how many graphs of its shape the stream may have
  bool isNew = false;     // the shape may never come again: a graph is made when it comes for the second time
  bool isShort = false;   // the stream may end soon: no graph is made for it
};

class FoldedGraphs {
 public:
  // `context`: the GPU's.
  FoldedGraphs(const Driver& driver, const PrimaryContext& context) : driver(driver), context(context) {}

  // Launches `run` as one graph into `stream`, a virtual handle; `real` is the driver's. False if nothing was launched.
  bool launch(uint64_t stream, CUstream real, FoldedRun run, FoldedRunHints hints);

  // Ends all graphs that name the object, or that serve the stream: before it is destroyed or changed.
  void forget(api::Kind kind, uint64_t handle);
  // Ends all graphs; also called when the session's objects are dropped. True if there were any.
  bool dropAll();
  bool isEmpty() const { return pools.empty(); }

 private:
  // The graphs of one stream and shape; the one used last is at the end.
  struct Pool {
    uint64_t stream = 0;
    std::string shape;
    std::vector<std::unique_ptr<FoldedGraph>> graphs;
    uint64_t lastUse = 0;
    unsigned refusals = 0;
  };
  using Pools = std::unordered_map<uint64_t, Pool>;  // by a hash of stream and shape

  FoldedGraph* find(Pool& pool, FoldedRun run, FoldedRunHints hints);
  bool make(Pool& pool, FoldedRun run);
  void use(Pool& pool, size_t index);
  Pools::iterator end(Pools::iterator pool);
  void makeRoom(size_t more, const Pool& except);
  bool isKnown(uint64_t shape);

  static constexpr size_t mostNodes = 8192;     // of all graphs together
  static constexpr size_t mostPools = 1024;
  static constexpr unsigned mostRefusals = 8;   // after so many refusals a shape is no longer folded in this stream
  static constexpr uint64_t restAfterLack = 1024;  // number of runs that are not folded after the driver had no memory for a graph

  const Driver& driver;
  const PrimaryContext& context;
  Pools pools;
  size_t allNodes = 0;
  uint64_t runs = 0, restsUntil = 0;
  std::vector<uint64_t> shapesSeen = std::vector<uint64_t>(256);  // by the shape's hash
};

}  // namespace vgpu::stub
