// An executable graph: the content of the graph from which it was instantiated, as steps in a valid order, including the nodes of child
// graphs. The worker has it as a graph of the driver's, with one or two nodes for each step (docs/graphs.md):
//
//   record of an event    the driver's record, and a write of the launch's sequence number into the step's completion word
//   host function         that write, and a wait until the program has answered it
//   copy of pageable      a host function that copies between the program's memory and pinned memory, before or after a copy
//   conditional node      the driver's; the steps of its bodies are in the driver's bodies, and follow it in the order
//
// If the driver's graph cannot take a change, because it needs other nodes or concerns a body, the worker's graph is made again
// (executable-remake.cc).
//
// Its nodes may be on several devices, and it may be launched into a stream of any device. It is launched in one ring, that of its own
// device; the frames that make a node are in the ring of the node's device (across-devices.cc).
//
// As in CUDA, two threads must not use an executable graph at the same time. All of it stays in the program over a suspend; the worker's
// part is restored by its recipe, and later changes by rows of the snapshot.
#pragma once

#include <cuda.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "intercept/session/graph/edge-ports.h"
#include "intercept/session/graph/graph.h"
#include "intercept/session/graph/outline.h"
#include "intercept/session/host-functions.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

class Executable {
 public:
  // Why a graph cannot be instantiated, or an executable graph not updated by it.
  struct Problem {
    CUresult result = CUDA_SUCCESS;
    CUgraphInstantiateResult instantiate = CUDA_GRAPH_INSTANTIATE_ERROR;
    CUgraphExecUpdateResult update = CU_GRAPH_EXEC_UPDATE_ERROR;
    uint64_t node = 0;  // the node of the graph at which the problem was found
    uint64_t from = 0;  // the other end of an edge
  };

  // `handle`: a new one of kind graphExec, whose entry holds the graph; for a device-launchable graph, the address that kernels use.
  static CUresult instantiate(Thread& thread, const Graph& graph, uint64_t flags, uint64_t& handle, Problem& problem);
  // The graph of a live handle, of either form; nullptr if there is none.
  static std::shared_ptr<Executable> find(Thread& thread, uint64_t handle);
  // Ends it without waiting: posted launches still run, and what they use lives until they have ended.
  static CUresult end(Thread& thread, uint64_t handle);

  uint64_t flags() const { return wantedFlags; }
  // The flags that the driver reports; it reports no others.
  uint64_t reportedFlags() const {
    return wantedFlags & (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
  }

  CUresult launch(Thread& thread, uint64_t stream);
  bool hasMemory() const { return !allocated.empty() || !freed.empty(); }
  CUresult upload(Thread& thread, uint64_t stream);
  // The work of a node at the next launch. nullptr for a child node, and if there is no such node.
  const NodeWork* findWork(uint64_t node);
  // Sets the work of a node for later launches, including its attributes. CUDA_ERROR_INVALID_VALUE if the node is not one of the graph from
  // which this was made, or cannot be changed that way.
  CUresult set(Thread& thread, uint64_t node, const NodeWork& work);
  // The same for all nodes, by a graph of the same shape; memory of allocation nodes becomes that of its nodes.
  CUresult update(Thread& thread, const Graph& graph, Problem& problem);
  CUresult setChild(Thread& thread, uint64_t node, const Graph& child);
  CUresult setEnabled(Thread& thread, uint64_t node, bool enabled);
  // nullptr if there is no such node, or it cannot be disabled.
  const bool* findEnabled(uint64_t node) const;

 private:
  // Pinned memory between the program's pageable memory and the device.
  class Staging;

  // Where a step is: in a body of the conditional node of step `step`, or (none) in the graph itself.
  struct Place {
    static constexpr uint32_t none = UINT32_MAX;
    uint32_t step = none, body = 0;
    bool operator==(const Place&) const = default;
  };
  struct PortedEdge {
    uint32_t from;  // number of an earlier step
    CUgraphEdgeData data;
    bool operator==(const PortedEdge& other) const { return from == other.from && isSame(data, other.data); }
  };
  struct Step {
    uint64_t node = 0;             // the program's handle of the graph's node
    NodeWork work;
    std::vector<uint32_t> before;  // earlier steps
    std::vector<PortedEdge> ported;  // edges from other steps, each with one kernel
    bool enabled = true;
    uint32_t first = 0, last = 0;  // numbers of the worker's nodes
    std::optional<uint32_t> word;  // its completion word
    uint64_t number = 0;           // of the last launch, in the ring of the word's device; 0: none has written the word
    std::shared_ptr<HostFunctions::OfNode> function;  // of a step that has a part in the program's process
    std::shared_ptr<Staging> staging;
    Place place;
    unsigned device = 0;  // the device whose ring has the frames of its node
  };
  // User objects that graphs hold, by the child node whose graph holds them; 0: the graph itself. Those of bodies count to the graph that
  // contains them.
  using Held = std::map<uint64_t, UserReferences>;
  struct Shape {
    std::vector<Step> steps;
    Held held;
  };
  class Sender;

  Executable(Thread& thread, const Graph& graph, unsigned device)
      : session(thread.session), device(device), lastRing(device), outline(graph), ownGraph(graph.conditions), fillsGraph(graph.conditions) {}

  static bool flatten(const Graph& graph, const std::vector<uint32_t>& entry, const Place& place, Shape& shape,
                      std::vector<uint32_t>& last);
  static bool flatten(const Graph& graph, Shape& shape);
  static bool isConditional(const Step& step);
  static CUresult checkBodies(const Shape& shape, Problem& problem);
  static CUresult checkLaunchable(const Shape& shape, uint64_t flags, uint32_t devices, Problem& problem);
  static bool hasDeviceNodes(const Graph& graph);
  void nameByAddress(uint64_t address);
  Problem problemAt(uint32_t node, uint32_t why) const;
  // Sends the worker's whole graph, in the rings of its device and of its nodes' devices.
  CUresult sendGraph(Thread& thread, Problem& problem);
  CUresult sendSteps(Thread& thread, Problem& problem);
  CUresult sendStep(Thread& thread, uint32_t number, uint32_t& sent);
  // `isOther`: the kernel's function changes, and the result says whether the driver accepts that.
  CUresult sendSet(Thread& thread, const Step& step, bool isOther = false);
  CUresult sendEnabled(Thread& thread, const Step& step, bool enabled);
  // Claims what only one executable graph may have at a time.
  CUresult claim(const Step& step);
  // placeSteps(): assigns the steps' devices, returns them as bits, and the device in whose ring the graph is launched.
  static uint32_t devicesNamed(Session& session, const NodeWork& work);
  static CUresult placeSteps(Thread& thread, Shape& shape, unsigned& device, uint32_t& devices, Problem& problem);
  // The device in whose ring the numbers of a step's word count: an event's own device, else the graph's.
  unsigned wordDevice(const Step& step) const;
  bool recordsElsewhere() const;
  // Numbers the records of other devices' events for the next launch: returns their words, with a number for each.
  CUresult numberRecords(Thread& thread, std::vector<uint32_t>& words, std::vector<uint64_t>& numbers);
  // Orders frames sent to the device's ring from now on behind all frames sent for this graph.
  CUresult follow(Thread& thread, unsigned ring);
  // An internal stream of the graph, which contains no work of the program.
  uint64_t streamOn(Thread& thread, unsigned device);
  CUresult launchAcross(Thread& thread, uint64_t stream, uint32_t others);
  CUresult launchHere(Thread& thread, uint64_t stream);
  CUresult prepare(Thread& thread, Step& step);
  std::function<void()> functionOf(const Step& step, bool enabled);
  void release(Step& step);
  CUresult check(const Step& step, const NodeWork& work) const;
  struct Change {
    uint32_t step;
    NodeWork work;
    bool enabled;
    uint64_t from = 0;  // the node of the other graph from which the change comes
  };
  // The changes of all steps to the nodes with which they are paired.
  CUresult changesOf(const std::vector<OutlinePair>& pairs, std::vector<Change>& changes, Problem& problem) const;
  CUgraphExecUpdateResult compare(const Step& step, const NodeWork& wanted) const;
  bool hasSameContext(const NodeWork& a, const NodeWork& b) const;
  CUresult replace(Thread& thread, const std::optional<OutlineProblem>& unlike, const std::vector<OutlinePair>& pairs, Problem& problem);
  // Applies checked changes. If one fails, nothing is changed. `problem`: set if the driver refuses a function.
  CUresult apply(Thread& thread, const std::vector<Change>& changes, Problem& problem);
  CUresult changeFunctions(Thread& thread, const std::vector<Change>& changes, Problem& problem);
  static bool isInPlace(const Step& step, const NodeWork& work);
  bool hasEnded(const Step& step) const;
  static bool hasOtherFunction(const Step& step, const NodeWork& work);
  CUresult remake(Thread& thread, const std::vector<Change>& changes);
  struct Before;
  void takeBack(Before& was) noexcept;
  void takeBack(Thread& thread, Before& was, uint64_t tried);
  bool mayHaveMemory(const Graph& graph) const;
  void noteMemory();
  CUresult awaitBefore(Thread& thread, uint64_t stream);
  Step* findStep(uint64_t node);
  uint32_t numberOf(const Step& step) const { return static_cast<uint32_t>(&step - shape.steps.data()); }
  // Whether a launch uses anything besides the driver's graph that must outlive the launch.
  bool holdsAnything() const;
  template <typename Frame>
  CUresult sendLaunch(Thread& thread, Frame& frame, uint64_t stream);
  CUresult launchFenced(Thread& thread, uint64_t stream);
  // Holds the user objects of a graph and its children, by the paired nodes of this graph; nodes without a pair count for themselves.
  void hold(const Graph& graph, uint64_t ofChild, const std::vector<OutlinePair>& pairs);
  // The same, replacing what the nodes of the pairs have held.
  void replaceHeld(const Graph& graph, uint64_t ofChild, const std::vector<OutlinePair>& pairs);
  void giveUp(Held given);
  CUresult takeMemory();

  Session& session;
  const unsigned device;
  unsigned lastRing;     // the ring of the last frame sent for it
  uint32_t devices = 0;  // that have nodes of it, as bits
  std::array<uint64_t, maxDevices> streams{};
  uint64_t handle = 0;   // of the worker's graph: the program's handle, until the graph is made again
  bool isBegun = false;  // whether the worker has a graph with that handle
  uint64_t address = 0;  // by which kernels launch it, if they may
  uint64_t wantedFlags = 0;
  Shape shape;
  const Outline outline;  // of the graph from which it was made
  // owned-memory.h's keys of that graph, and of the graph by which this one was last updated, whose memory fills may name.
  const std::shared_ptr<const Conditions> ownGraph;
  std::shared_ptr<const Conditions> fillsGraph;
  std::unordered_map<uint64_t, uint32_t> byNode;  // steps, by the program's handle of their node
  std::vector<uint32_t> hosts, records;           // steps for which a launch stores a number
  std::vector<std::shared_ptr<GraphMemory>> allocated, freed;  // by each launch
  std::vector<std::shared_ptr<DeviceNode>> deviceNodes;        // owned by this executable graph alone
  std::vector<std::shared_ptr<Staging>> replaced; // no longer used by steps, but perhaps by earlier launches
  std::vector<Condition> conditions;              // as the driver's graph has them
  bool hasNewConditions = false;                  // during an update: the driver's graph does not have them yet
  uint64_t lastSequence = 0;                      // of the last launch
  uint64_t lastStream = 0;                        // the stream of the last launch
  StreamFence before;                             // after the launches of a worker's graph that this one has replaced
  StreamFence lastLaunch;                          // after the last launch, if launches use anything
  std::shared_ptr<const void> claimsConditions;   // of the graph from which it was made, if that has any
};

}  // namespace vgpu::client
