// Graphs: operations and the dependencies between them, built by the program or captured from streams, and executable graphs.
//
// All graphs of the process share one lock (Driver::graphMutex): they are small and seldom built. A launch uses the executable graph, which
// changes only under its own lock.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "stub/emulator/driver/context.h"
#include "stub/emulator/stream/event.h"
#include "stub/emulator/stream/graph-conditional.h"

namespace vgpu::emulator::api {

struct Graph;
struct LoadedModule;

struct GraphNode {
  CUgraphNode handle = nullptr;
  Graph* graph = nullptr;
  Operation operation;                // its type determines that of `description`; see graph-node.cc
  std::shared_ptr<Graph> child;       // of a child graph node: its own copy
  std::shared_ptr<Event> event;       // of event nodes
  std::shared_ptr<Conditional> conditional;  // of conditional nodes
  std::vector<GraphNode*> before;     // its dependencies
  const GraphNode* origin = nullptr;  // the node of which this one is a clone
};

// Memory of a graph's allocation nodes: its address is valid from the creation of the node until the graph and all its executable graphs
// are destroyed.
struct GraphMemory {
  GraphMemory(Driver& driver, uint64_t address) : driver(driver), address(address) {}
  ~GraphMemory();
  Driver& driver;
  const uint64_t address;
};

struct Graph : std::enable_shared_from_this<Graph> {
  // `conditions`: those of the graph in which this one is a node's body; without them it has its own.
  explicit Graph(Driver& driver, std::shared_ptr<Conditions> conditions = nullptr)
      : driver(driver), isBody(conditions != nullptr), conditions(isBody ? conditions : std::make_shared<Conditions>()) {}
  ~Graph();
  Graph(const Graph&) = delete;

  Driver& driver;
  const bool isBody;
  const std::shared_ptr<Conditions> conditions;
  CUgraph handle = nullptr;
  std::list<std::shared_ptr<GraphNode>> nodes;  // in the order of creation
  std::vector<std::shared_ptr<GraphMemory>> memory;

  // Adds a node that depends on `before`, all of which must be this graph's. Refuses with CUDA_ERROR_INVALID_VALUE.
  std::shared_ptr<GraphNode> add(Operation operation, std::span<GraphNode* const> before);
  // The nodes of this graph with these handles. Refuses if one is not a node of this graph.
  std::vector<GraphNode*> nodesOf(std::span<const CUgraphNode> handles) const;
  // Without conditional and device-updatable nodes: programs cannot clone graphs with these.
  std::shared_ptr<Graph> clone() const;
  bool hasConditionals() const;
  bool hasDeviceNodes() const;  // device-updatable nodes
  // Every node after its dependencies; refuses with CUDA_ERROR_INVALID_VALUE if there is a cycle.
  std::vector<GraphNode*> ordered() const;
};

// Whether an executable graph has ended. Outlives it.
struct GraphEnd {
  TaskRef last;                         // the graph's last launch or upload; written before `destroyed`
  std::atomic<bool> destroyed = false;  // release and acquire, for `last`
  bool hasCome() const { return destroyed.load(std::memory_order_acquire) && last->done(); }
};

// An executable graph: its nodes, with those of child graphs, in an order that satisfies every dependency.
struct GraphExec : std::enable_shared_from_this<GraphExec> {
  struct Step {
    Operation operation;
    std::shared_ptr<Event> event;
    std::vector<size_t> before;     // indices of earlier steps
    std::vector<CUgraphNode> path;  // the node that it came from, after the child graph nodes around it
    bool enabled = true;
    std::shared_ptr<Conditional> conditional{};
    std::vector<std::vector<Step>> bodies{};  // of the conditional node
    bool changed = true;  // by the host, since the last upload
    KernelCalls calls{};  // of the kernel with which it was instantiated
    bool runs() const;    // it is enabled, or a kernel may have enabled it
  };
  GraphExec(const Graph&, unsigned long long flags);
  Driver& driver;
  CUgraphExec handle = nullptr;
  const unsigned long long flags;

  const std::shared_ptr<Graph> source;  // the graph as it was, for captures of a launch
  std::mutex mutex;
  std::vector<Step> steps;
  std::vector<std::shared_ptr<GraphMemory>> memory;
  const std::shared_ptr<ConditionValues> values;
  TaskRef last;  // launches and uploads of one executable graph run one after another
  const std::shared_ptr<GraphEnd> end = std::make_shared<GraphEnd>();

  // Whether kernels can launch it: its handle is an address in the driver's block.
  bool isForKernels() const { return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0; }
  bool launchesGraphs = false;  // its kernels launch graphs
  Context* context = nullptr;   // of any of its kernels; null: it has none
  std::atomic<int> running{0};  // number of running launches, if kernels can launch it
  // The steps that a launch by a kernel runs; null: not uploaded yet.
  std::shared_ptr<const std::vector<Step>> uploadedSteps() {
    std::lock_guard lock(uploadedMutex);
    return uploaded;
  }

  void launch(Stream&);
  void upload(Stream&);
  void close();  // called when it is destroyed: its device-updatable nodes may be used in another graph
  Step& stepOf(CUgraphNode node);  // refuses if the node is not of the graph from which this was instantiated
  // Calls each(step) for all steps, including those of bodies.
  template <class Each>
  void forSteps(Each each) {
    forStepsOf(steps, each);
  }

 private:
  template <class Each>
  static void forStepsOf(std::vector<Step>& steps, Each& each) {
    for (Step& step : steps) {
      each(step);
      for (std::vector<Step>& body : step.bodies) forStepsOf(body, each);
    }
  }
  // Stores the host's changes where kernels use them; empty if there are none. The mutex is held.
  std::function<void()> changes();
  // Called when the changes have been submitted to a stream.
  void haveChanged() {
    forSteps([](Step& step) { step.changed = false; });
  }
  // The action before a launch's steps; empty if there is none.
  Action beginning(const std::shared_ptr<class GraphEnvironment>&);

  std::mutex uploadedMutex;  // a leaf
  std::shared_ptr<const std::vector<Step>> uploaded;
};

// If the setting graph-names is on, refuse with CUDA_ERROR_ILLEGAL_STATE to destroy an object that an executable graph names.
void requireModuleUnnamed(Driver&, const LoadedModule&);
void requireEventUnnamed(Driver&, const Event&);
void requireMemoryUnnamed(Driver&, CUdeviceptr address, uint64_t bytes);

// The state of a capture.
struct Capture {
  std::shared_ptr<Graph> graph;
  CUstreamCaptureMode mode;
  std::thread::id thread;
  const Stream* origin;
  unsigned long long id;
  bool invalidated = false;
};

}  // namespace vgpu::emulator::api
