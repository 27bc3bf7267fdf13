#include "stub/gpu/folded-graphs.h"

#include <algorithm>
#include <utility>

namespace vgpu::stub {

bool FoldedGraphs::launch(uint64_t stream, CUstream real, FoldedRun run, FoldedRunHints hints) {
  if (++runs < restsUntil) return false;
  uint64_t shape = run.size();
  for (const FoldedWork& work : run) shape = hashOf(shape, static_cast<uint64_t>(work.shape));
  if (hints.isNew && !isKnown(shape)) return false;

  Pool& pool = pools[hashOf(shape, stream)];
  if (pool.shape.empty()) {
    pool.stream = stream;
    for (const FoldedWork& work : run) pool.shape += work.shape;
  }
  auto isOf = [](char letter, const FoldedWork& work) { return letter == work.shape; };
  if (pool.stream != stream || !std::ranges::equal(pool.shape, run, isOf) || pool.refusals >= mostRefusals) return false;
  pool.lastUse = runs;

  FoldedGraph* graph = find(pool, run, hints);
  if (graph == nullptr) return false;
  CUresult result = graph->set(run);
  if (result == CUDA_SUCCESS) result = graph->launch(real);
  if (result == CUDA_SUCCESS) return true;
  ++pool.refusals;
  allNodes -= graph->size();
  pool.graphs.pop_back();
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    restsUntil = runs + restAfterLack;
    dropAll();
  }
  return false;
}

// Returns a graph that is to do `run`, moved to the end of the pool.
FoldedGraph* FoldedGraphs::find(Pool& pool, FoldedRun run, FoldedRunHints hints) {
  auto& graphs = pool.graphs;
  // The graph used last (at the end) may be in flight, so any other one is preferred, even if its nodes must be set.
  for (size_t i = 0; i + 1 < graphs.size(); ++i) {
    if (!graphs[i]->does(run)) continue;
    use(pool, i);
    return graphs.back().get();
  }
  if (graphs.empty() && hints.isShort) return nullptr;
  if (graphs.size() < hints.copies && !hints.isShort) {
    makeRoom(run.size(), pool);
    return make(pool, run) ? graphs.back().get() : nullptr;
  }
  use(pool, 0);
  return graphs.back().get();
}

bool FoldedGraphs::make(Pool& pool, FoldedRun run) {
  std::unique_ptr<FoldedGraph> made;
  CUresult result = FoldedGraph::make(driver, context.get(), run, made);
  if (result == CUDA_SUCCESS) {
    allNodes += made->size();
    pool.graphs.push_back(std::move(made));
    return true;
  }
  ++pool.refusals;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    dropAll();
    restsUntil = runs + restAfterLack;
  }
  return false;
}

void FoldedGraphs::use(Pool& pool, size_t index) {
  auto chosen = pool.graphs.begin() + static_cast<ptrdiff_t>(index);
  std::rotate(chosen, chosen + 1, pool.graphs.end());
}

void FoldedGraphs::forget(api::Kind kind, uint64_t handle) {
  for (auto pool = pools.begin(); pool != pools.end();) {
    auto& graphs = pool->second.graphs;
    if (kind == api::Kind::STREAM && pool->second.stream == handle) {
      pool = end(pool);
      continue;
    }
    std::erase_if(graphs, [&](auto& graph) {
      if (!graph->names(kind, handle)) return false;
      allNodes -= graph->size();
      return true;
    });
    ++pool;
  }
}

bool FoldedGraphs::dropAll() {
  bool any = allNodes > 0;
  while (!pools.empty()) end(pools.begin());
  std::ranges::fill(shapesSeen, 0);
  return any;
}

FoldedGraphs::Pools::iterator FoldedGraphs::end(Pools::iterator pool) {
  for (auto& graph : pool->second.graphs) allNodes -= graph->size();
  return pools.erase(pool);
}

// Ends the least recently used graphs.
void FoldedGraphs::makeRoom(size_t more, const Pool& except) {
  while (allNodes + more > mostNodes || pools.size() > mostPools) {
    auto oldest = pools.end();
    for (auto pool = pools.begin(); pool != pools.end(); ++pool)
      if (&pool->second != &except && (oldest == pools.end() || pool->second.lastUse < oldest->second.lastUse)) oldest = pool;
    if (oldest == pools.end()) return;
    end(oldest);
  }
}

// Whether a run of that shape was seen recently; records the shape.
bool FoldedGraphs::isKnown(uint64_t shape) {
  uint64_t& place = shapesSeen[shape % shapesSeen.size()];
  return std::exchange(place, shape) == shape;
}

}  // namespace vgpu::stub
