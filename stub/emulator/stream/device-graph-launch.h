// The execution of a graph launched by the host whose kernels launch graphs (CUDA Programming Guide, "Device Graph Launch").
//
// Every launched graph has an environment: its own work, and the environments of the graphs that it launches to run beside it
// (cudaStreamGraphFireAndForget). When all of these have ended, the first pending tail launch (cudaStreamGraphTailLaunch) takes the graph's
// place; the tail launches of that graph go before those that were pending already. A sibling launch belongs to the environment around the
// launching graph's. The outermost environment is the stream's, around the graph that the host launches: when it is complete, the launch is
// complete.
//
// All of it runs as tasks of the scheduler; a last task of each graph ends the graph's part. Nothing here waits for anything else, and
// calls do not nest, so a graph may launch itself forever.
#pragma once

#include <deque>
#include <memory>

#include "stub/emulator/ptx/run/device-graphs.h"
#include "stub/emulator/stream/graph.h"

namespace vgpu::emulator::api {

class GraphEnvironment : public std::enable_shared_from_this<GraphEnvironment> {
 public:
  struct Root;
  // For a launch by the host into a stream of `context`. `complete`, a task without predecessors, is started when all has ended.
  static std::shared_ptr<GraphEnvironment> ofHost(std::shared_ptr<GraphExec> graph, Context& context, TaskRef complete);
  GraphEnvironment(std::shared_ptr<Root> root, std::shared_ptr<GraphEnvironment> around, std::shared_ptr<GraphExec> graph)
      : root(std::move(root)), around(std::move(around)), graph(std::move(graph)) {}

  // begin() starts the graph's own work; end() is called when that has ended.
  void begin();
  void end();
  // A kernel of the graph launches another graph, or its own graph as a tail.
  DeviceGraphs::Answer launch(std::shared_ptr<GraphExec> other, GraphStream stream);
  uint64_t handle() const;  // of the graph; 0 if kernels cannot launch it

  // The environment of the graph whose step the calling thread runs; nullptr if it runs none.
  static GraphEnvironment* current() { return ofThread; }
  // Wraps `action` to run as a step of this graph.
  Action inside(Action action);

 private:
  using Graphs = std::deque<std::shared_ptr<GraphExec>>;
  std::shared_ptr<GraphEnvironment> takePlace();
  void run();
  bool isLate();

  static thread_local GraphEnvironment* ofThread;
  const std::shared_ptr<Root> root;
  const std::shared_ptr<GraphEnvironment> around;  // null: this is the stream's environment, which has no graph
  const std::shared_ptr<GraphExec> graph;
  // The members below are guarded by the root's mutex, a leaf.
  unsigned open = 1;      // number of unfinished parts: the graph's own work, and environments in this one
  unsigned launched = 0, siblings = 0;  // number of launches so far beside this graph, and as its siblings
  bool itself = false;    // the graph is among its own tails
  Graphs tails, behind;   // its tail launches, and those that were pending before it began
};

}  // namespace vgpu::emulator::api
