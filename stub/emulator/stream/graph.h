// Graphs: operations and the order between them, made by hand or recorded from streams, and what is instantiated of
// them.
//
// All graphs of the process share one lock (Driver::graphMutex): they are built seldom and are small. A launch works on the
// executable form, which does not change while its own lock is held.
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
  Operation operation;                // its type says what `description` is; see graph-node.cc
  std::shared_ptr<Graph> child;       // of a child-graph node: its own copy
  std::shared_ptr<Event> event;       // of event nodes
  std::shared_ptr<Conditional> conditional;  // of conditional nodes
  std::vector<GraphNode*> before;     // those that it depends on
  const GraphNode* origin = nullptr;  // the node of which this is the clone
};

// Memory that allocation nodes of a graph own: its address holds from the node's making until the graph and every
// executable of it are gone.
struct GraphMemory {
  GraphMemory(Driver& driver, uint64_t address) : driver(driver), address(address) {}
  ~GraphMemory();
  Driver& driver;
  const uint64_t address;
};

struct Graph : std::enable_shared_from_this<Graph> {
  // Without `conditions` of another graph, in which this is a node's body, it has its own.
  explicit Graph(Driver& driver, std::shared_ptr<Conditions> conditions = nullptr)
      : driver(driver), isBody(conditions != nullptr), conditions(isBody ? conditions : std::make_shared<Conditions>()) {}
  ~Graph();
  Graph(const Graph&) = delete;

  Driver& driver;
  const bool isBody;
  const std::shared_ptr<Conditions> conditions;
  CUgraph handle = nullptr;
  std::list<std::shared_ptr<GraphNode>> nodes;  // in order of making
  std::vector<std::shared_ptr<GraphMemory>> memory;

  // Adds a node behind `before`, all of which must be this graph's. Refuses with CUDA_ERROR_INVALID_VALUE.
  std::shared_ptr<GraphNode> add(Operation operation, std::span<GraphNode* const> before);
  // This graph's nodes of those handles. Refuses where one is no node, or another graph's.
  std::vector<GraphNode*> nodesOf(std::span<const CUgraphNode> handles) const;
  // Without conditional nodes, and with nodes that kernels cannot change: no program can clone such graphs.
  std::shared_ptr<Graph> clone() const;
  bool hasConditionals() const;
  bool hasDeviceNodes() const;  // kernels that other kernels can change
  // Every node after all that it depends on; refuses with CUDA_ERROR_INVALID_VALUE if there is a circle.
  std::vector<GraphNode*> ordered() const;
};

// When an executable graph is over. Outlives it.
struct GraphEnd {
  TaskRef last;                         // its last launch or upload; written before `destroyed`
  std::atomic<bool> destroyed = false;  // release and acquire, for `last`
  bool hasCome() const { return destroyed.load(std::memory_order_acquire) && last->done(); }
};

// A graph that can be launched: its nodes, those of child graphs included, in an order that keeps every dependency.
struct GraphExec : std::enable_shared_from_this<GraphExec> {
  struct Step {
    Operation operation;
    std::shared_ptr<Event> event;
    std::vector<size_t> before;     // earlier steps
    std::vector<CUgraphNode> path;  // the node that it came from, child-graph nodes first
    bool enabled = true;
    std::shared_ptr<Conditional> conditional{};
    std::vector<std::vector<Step>> bodies{};  // of that
    bool changed = true;  // by the host, since it was uploaded
    KernelCalls calls{};  // of the kernel that it was made of
    bool runs() const;    // it is enabled, or a kernel may have enabled it
  };
  GraphExec(const Graph&, unsigned long long flags);
  Driver& driver;
  CUgraphExec handle = nullptr;
  const unsigned long long flags;

  const std::shared_ptr<Graph> source;  // as it was, for captures of a launch
  std::mutex mutex;
  std::vector<Step> steps;
  std::vector<std::shared_ptr<GraphMemory>> memory;
  const std::shared_ptr<ConditionValues> values;
  TaskRef last;  // launches and uploads of one executable run one after another
  const std::shared_ptr<GraphEnd> end = std::make_shared<GraphEnd>();

  // Kernels can launch it: its handle is an address in the driver's block.
  bool isForKernels() const { return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0; }
  bool launchesGraphs = false;  // its kernels do
  Context* context = nullptr;   // of its kernels, of which any; null: it has none
  std::atomic<int> running{0};  // launches, if kernels can launch it
  // What a launch by a kernel runs; null: none can launch it yet.
  std::shared_ptr<const std::vector<Step>> uploadedSteps() {
    std::lock_guard lock(uploadedMutex);
    return uploaded;
  }

  void launch(Stream&);
  void upload(Stream&);
  void close();  // it has been destroyed: what it has of its graph's nodes that kernels change is free for another
  Step& stepOf(CUgraphNode node);  // refuses where the node is not of the graph that this was made from
  // Calls each(step) for all, those of bodies too.
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
  // What writes what the host has changed to where kernels use it; empty if there is nothing. The mutex is held.
  std::function<void()> changes();
  // It is in a stream.
  void haveChanged() {
    forSteps([](Step& step) { step.changed = false; });
  }
  // What comes before a launch's steps; empty if nothing does.
  Action beginning(const std::shared_ptr<class GraphEnvironment>&);

  std::mutex uploadedMutex;  // a leaf
  std::shared_ptr<const std::vector<Step>> uploaded;
};

// Refuse with CUDA_ERROR_ILLEGAL_STATE, where the settings ask for it, what is about to be destroyed and an executable names.
void requireModuleUnnamed(Driver&, const LoadedModule&);
void requireEventUnnamed(Driver&, const Event&);
void requireMemoryUnnamed(Driver&, CUdeviceptr address, uint64_t bytes);

// What the recording of streams into a graph needs to know.
struct Capture {
  std::shared_ptr<Graph> graph;
  CUstreamCaptureMode mode;
  std::thread::id thread;
  const Stream* origin;
  unsigned long long id;
  bool invalidated = false;
};

}  // namespace vgpu::emulator::api
