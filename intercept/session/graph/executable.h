// An executable graph: what was instantiated of a graph, as steps in an order that keeps every dependency, nodes of child graphs
// among them. The worker has it as the driver's graph, of one or two of its own nodes a step (docs/graphs.md):
//
//   record of an event    the driver's record, and a write of the launch's sequence number into the step's completion word
//   host function         that write, and a wait until the program has answered it
//   copy of pageable      a host function that copies between the program's memory and pinned memory, before or behind a copy
//   conditional node      the driver's, in whose bodies the steps of its bodies are, which come behind it in the order
//
// A change that the driver's graph cannot take, because it needs other nodes or is in a body, makes the worker's graph anew
// (executable-remake.cc).
//
// Its nodes may be on several devices, and it may be launched into a stream of any: it has one ring, that of its own device, in which
// it is launched, and each node's frames are in the ring of the node's device (across-devices.cc).
//
// As CUDA says, an executable graph is not to be used by two threads at a time. All of it stays in the program over a suspend; the
// worker's part comes back by its recipe, and what has been set since by rows of the snapshot.
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
  // Why a graph cannot be made executable, or become another one's.
  struct Problem {
    CUresult result = CUDA_SUCCESS;
    CUgraphInstantiateResult instantiate = CUDA_GRAPH_INSTANTIATE_ERROR;
    CUgraphExecUpdateResult update = CU_GRAPH_EXEC_UPDATE_ERROR;
    uint64_t node = 0;  // of the graph, at which it was found
    uint64_t from = 0;  // the other end of an edge
  };

  // The handle is a new one of kind graphExec, whose entry holds the graph; of a graph that kernels launch, what they know it by.
  static CUresult instantiate(Thread& thread, const Graph& graph, uint64_t flags, uint64_t& handle, Problem& problem);
  // Of a live handle, of either sort; nullptr if there is none.
  static std::shared_ptr<Executable> find(Thread& thread, uint64_t handle);
  // Ends it and waits for nothing: launches that have been posted run, and what they use lives until they have.
  static CUresult end(Thread& thread, uint64_t handle);

  uint64_t flags() const { return wantedFlags; }
  // The driver tells no other.
  uint64_t reportedFlags() const {
    return wantedFlags & (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
  }

  CUresult launch(Thread& thread, uint64_t stream);
  bool hasMemory() const { return !allocated.empty() || !freed.empty(); }
  CUresult upload(Thread& thread, uint64_t stream);
  // What a node does at the next launch. nullptr for a child, and if there is no such node.
  const NodeWork* findWork(uint64_t node);
  // What a node does from the next launch on, its attributes too. CUDA_ERROR_INVALID_VALUE if it is no node of the graph that this was
  // made of, or cannot be changed so.
  CUresult set(Thread& thread, uint64_t node, const NodeWork& work);
  // The same for all nodes, of a graph of the same shape; memory of nodes becomes that of its nodes.
  CUresult update(Thread& thread, const Graph& graph, Problem& problem);
  CUresult setChild(Thread& thread, uint64_t node, const Graph& child);
  CUresult setEnabled(Thread& thread, uint64_t node, bool enabled);
  // nullptr if there is no such node, or it cannot be disabled.
  const bool* findEnabled(uint64_t node) const;

 private:
  // Pinned memory between the program's and the device's.
  class Staging;

  // Where steps are: in a body of the conditional node of that step, or in the graph itself.
  struct Place {
    static constexpr uint32_t none = UINT32_MAX;
    uint32_t step = none, body = 0;
    bool operator==(const Place&) const = default;
  };
  struct PortedEdge {
    uint32_t from;  // an earlier step
    CUgraphEdgeData data;
    bool operator==(const PortedEdge& other) const { return from == other.from && isSame(data, other.data); }
  };
  struct Step {
    uint64_t node = 0;             // of the graph, by the program's handle
    NodeWork work;
    std::vector<uint32_t> before;  // earlier steps
    std::vector<PortedEdge> ported;  // from others, each of one kernel
    bool enabled = true;
    uint32_t first = 0, last = 0;  // of the worker's nodes
    std::optional<uint32_t> word;  // its completion word
    uint64_t number = 0;           // of the last launch, in the ring of the word's device; 0: none has written the word
    std::shared_ptr<HostFunctions::OfNode> function;  // of a step of which the program's process does a part
    std::shared_ptr<Staging> staging;
    Place place;
    unsigned device = 0;  // whose ring has the frames of its node
  };
  // The program's objects that graphs hold, by the node of which a graph is the child; 0: the graph itself. Those of bodies are with
  // the graph that they are in.
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
  // All of the worker's graph, in the ring of its device and of its nodes'.
  CUresult sendGraph(Thread& thread, Problem& problem);
  CUresult sendSteps(Thread& thread, Problem& problem);
  CUresult sendStep(Thread& thread, uint32_t number, uint32_t& sent);
  // `isOther`: a kernel's function changes, and whether the driver takes that is the result.
  CUresult sendSet(Thread& thread, const Step& step, bool isOther = false);
  CUresult sendEnabled(Thread& thread, const Step& step, bool enabled);
  // What only one executable graph has at a time.
  CUresult claim(const Step& step);
  // Devices of steps, by a bit each, and the one in whose ring the graph is launched.
  static uint32_t devicesNamed(Session& session, const NodeWork& work);
  static CUresult placeSteps(Thread& thread, Shape& shape, unsigned& device, uint32_t& devices, Problem& problem);
  // In whose ring the numbers of a step's word count: an event's own, else the graph's.
  unsigned wordDevice(const Step& step) const;
  bool recordsElsewhere() const;
  // Gives the records of other devices' events their numbers for the launch that comes: one for each of these words.
  CUresult numberRecords(Thread& thread, std::vector<uint32_t>& words, std::vector<uint64_t>& numbers);
  // Lets the frames that are sent to a device's ring from now on come behind all that were sent for this graph.
  CUresult follow(Thread& thread, unsigned ring);
  // A stream of the graph's own, in which no program gives work.
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
    uint64_t from = 0;  // of another graph, the node that has it so
  };
  // Of each step what the node is that is taken for its own.
  CUresult changesOf(const std::vector<OutlinePair>& pairs, std::vector<Change>& changes, Problem& problem) const;
  CUgraphExecUpdateResult compare(const Step& step, const NodeWork& wanted) const;
  bool hasSameContext(const NodeWork& a, const NodeWork& b) const;
  CUresult replace(Thread& thread, const std::optional<OutlineProblem>& unlike, const std::vector<OutlinePair>& pairs, Problem& problem);
  // Checked ones. If one fails, nothing is changed. `problem`: a function that the driver does not take.
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
  // What a launch uses besides the driver's graph, which must outlive it.
  bool holdsAnything() const;
  template <typename Frame>
  CUresult sendLaunch(Thread& thread, Frame& frame, uint64_t stream);
  CUresult launchFenced(Thread& thread, uint64_t stream);
  // Holds what a graph and its children do, whose nodes are taken for this one's as the pairs say; without a pair, for themselves.
  void hold(const Graph& graph, uint64_t ofChild, const std::vector<OutlinePair>& pairs);
  // The same in place of what the nodes of the pairs have held.
  void replaceHeld(const Graph& graph, uint64_t ofChild, const std::vector<OutlinePair>& pairs);
  void giveUp(Held given);
  CUresult takeMemory();

  Session& session;
  const unsigned device;
  unsigned lastRing;     // in which a frame was sent for it
  uint32_t devices = 0;  // that have nodes of it
  std::array<uint64_t, maxDevices> streams{};
  uint64_t handle = 0;   // of the worker's graph: the program's, until it is made anew
  bool isBegun = false;  // the worker has a graph of that handle
  uint64_t address = 0;  // that kernels launch it by, if they may
  uint64_t wantedFlags = 0;
  Shape shape;
  const Outline outline;  // of the graph that it was made of
  // That graph, as owned-memory.h knows it, and the one that it was updated by last, whose memory fills may name.
  const std::shared_ptr<const Conditions> ownGraph;
  std::shared_ptr<const Conditions> fillsGraph;
  std::unordered_map<uint64_t, uint32_t> byNode;  // steps, by the program's handle of their node
  std::vector<uint32_t> hosts, records;           // steps that a launch does something for
  std::vector<std::shared_ptr<GraphMemory>> allocated, freed;  // by a launch
  std::vector<std::shared_ptr<DeviceNode>> deviceNodes;        // that only this one has
  std::vector<std::shared_ptr<Staging>> replaced; // of copies that launches before may still use
  std::vector<Condition> conditions;              // as the driver's graph has them
  bool hasNewConditions = false;                  // while it is updated: it has not yet
  uint64_t lastSequence = 0;                      // of the last launch
  uint64_t lastStream = 0;                        // in which it was
  StreamFence before;                             // behind launches of a graph of the worker's that this one has replaced
  StreamFence lastLaunch;                          // behind it, if launches use anything
  std::shared_ptr<const void> claimsConditions;   // of the graph, if it has any
};

}  // namespace vgpu::client
