// What a launch of a graph by the host comes to when its kernels launch graphs (CUDA Programming Guide, "Device Graph Launch").
//
// Every launched graph has an environment: its own work and the environments of the graphs that it launches to run beside it
// (cudaStreamGraphFireAndForget). When all of that has ended, the first graph that waits behind it (cudaStreamGraphTailLaunch) takes
// its place, with what it launches as its tail before what waited already. A sibling belongs to the environment around the launching
// graph's. Around the graph that the host launches is the stream's environment: when it is complete, so is the launch.
//
// Tasks of the scheduler run all of it, each graph's with one behind them that ends the graph's part. Nothing here waits for
// another, and no call is nested in another: a graph may launch itself for ever.
#pragma once

#include <deque>
#include <memory>

#include "stub/emulator/ptx/run/device-graphs.h"
#include "stub/emulator/stream/graph.h"

namespace vgpu::emulator::api {

class GraphEnvironment : public std::enable_shared_from_this<GraphEnvironment> {
 public:
  struct Root;
  // Of a launch by the host into a stream of `context`. `complete`, which is tied behind nothing, is started when all has ended.
  static std::shared_ptr<GraphEnvironment> ofHost(std::shared_ptr<GraphExec> graph, Context& context, TaskRef complete);
  GraphEnvironment(std::shared_ptr<Root> root, std::shared_ptr<GraphEnvironment> around, std::shared_ptr<GraphExec> graph)
      : root(std::move(root)), around(std::move(around)), graph(std::move(graph)) {}

  // The graph's own work begins, and has ended.
  void begin();
  void end();
  // A kernel of the graph launches another, or, as a tail, its own.
  DeviceGraphs::Answer launch(std::shared_ptr<GraphExec> other, GraphStream stream);
  uint64_t handle() const;  // of the graph; 0 if kernels cannot launch it

  // Of the graph whose step the calling thread runs; nullptr: of none.
  static GraphEnvironment* current() { return ofThread; }
  // The same work, as a step of the graph.
  Action inside(Action action);

 private:
  using Graphs = std::deque<std::shared_ptr<GraphExec>>;
  std::shared_ptr<GraphEnvironment> takePlace();
  void run();
  bool isLate();

  static thread_local GraphEnvironment* ofThread;
  const std::shared_ptr<Root> root;
  const std::shared_ptr<GraphEnvironment> around;  // null: this is the stream's, which has no graph
  const std::shared_ptr<GraphExec> graph;
  // Guarded by the root's mutex, a leaf.
  unsigned open = 1;      // what has not ended: its own work, and environments in it
  unsigned launched = 0, siblings = 0;  // graphs to run beside it, and beside the one around it, until now
  bool itself = false;    // is among the tails
  Graphs tails, behind;   // that it has launched, and that waited before it began
};

}  // namespace vgpu::emulator::api
