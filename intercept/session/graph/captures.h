// Streams that are capturing: the work that the program puts into them becomes nodes of a graph instead of frames. This happens here alone,
// and the worker knows nothing of it (docs/graphs.md), so a suspend during a capture needs no extra work.
//
// Any thread; `mutex` guards everything but the counts. Under it only the mutexes of Graphs and GraphMemories are taken: a node's work is
// described, and an abandoned graph is destroyed, without it. A call that captures nothing only loads one count. Stays in the program over
// a suspend.
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "intercept/session/graph/graph.h"

namespace vgpu::client {

class Session;
class Thread;

class Captures {
 public:
  explicit Captures(Session& session) : session(session) {}

  // Whether any stream is capturing; whether one is, or an event was last recorded in one.
  bool isActive() const { return active.load(std::memory_order_relaxed) != 0; }
  bool concernsEvents() const { return isActive() || capturedEvents.load(std::memory_order_relaxed) != 0; }

  // Streams are resolved handles. `graph`: the graph to which nodes are added, depending on `tail`.
  CUresult begin(Thread& thread, uint64_t stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph, std::vector<GraphEdge> tail);
  CUresult end(Thread& thread, uint64_t stream, std::shared_ptr<Graph>& graph);

  struct Info {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    std::shared_ptr<Graph> graph;
    // The dependencies of the next node: the program may read them until a call on the stream, or the end of the capture.
    std::span<const CUgraphNode> nodes;
    std::span<const CUgraphEdgeData> edges;
  };
  // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy stream while a blocking stream is capturing.
  CUresult look(Thread& thread, uint64_t stream, Info& info);
  // Adds to the dependencies of the next node, or replaces them.
  CUresult setTail(uint64_t stream, std::vector<GraphEdge> tail, bool replaces);

  // For work in a stream, if isActive(). No value if the work is to be executed, because no capture is concerned. Else CUDA's result: of
  // the node that was added with the work that `describe` makes, or why none was. `overlaps`: whether a kernel may start before the kernels
  // that it depends on have ended.
  using Describe = std::function<CUresult(NodeWork&)>;
  std::optional<CUresult> add(Thread& thread, uint64_t stream, const Describe& describe, bool overlaps = false);
  // For a call that cannot be captured; success if it is to be executed.
  CUresult refuse(Thread& thread, uint64_t stream);
  // For a call that may wait for work of other streams or order work behind it, whichever stream is capturing.
  CUresult refuseUnsafe(Thread& thread);
  // For a call that waits for all work of a device.
  CUresult refuseOnDevice(unsigned device);

  // For a record of an event and a wait for one, if concernsEvents(); results as for add(). `edge`: the data of edges to nodes that wait
  // for the event, if it differs from the tail's.
  std::optional<CUresult> record(Thread& thread, uint64_t event, uint64_t stream, bool isExternal, const CUgraphEdgeData& edge = {});
  std::optional<CUresult> wait(Thread& thread, uint64_t event, uint64_t stream, bool isExternal);
  // For a query of an event.
  CUresult refuseEvent(uint64_t event);
  void forgetEvent(uint64_t event);
  // The program destroys the node.
  void forgetNode(const GraphNode& node);
  // The stream is destroyed.
  void leave(uint64_t stream);

 private:
  struct Capture {
    uint64_t id;
    CUstreamCaptureMode mode;
    const Thread* thread;
    uint64_t origin;  // the stream in which it began
    std::shared_ptr<Graph> graph;
    bool invalidated = false, ended = false;
  };
  // A capturing stream, or an event recorded in one.
  struct Place {
    std::shared_ptr<Capture> capture;
    std::vector<GraphEdge> tail;  // the dependencies of the next node
    // The same in the form that look() returned to the program.
    std::vector<CUgraphNode> toldNodes = {};
    std::vector<CUgraphEdgeData> toldEdges = {};
  };

  // The capture that the thread's call on `stream` would affect implicitly; nullptr if none.
  Capture* implicatedBy(const Thread& thread, uint64_t stream) const;
  bool invalidatesBy(const Thread& thread, uint64_t stream);
  CUresult addNode(Place& place, NodeWork& work, bool overlaps);
  static bool isJoined(const Place& place, const std::vector<const GraphNode*>& joined);
  // Ends the capture and returns its graph; remaining places refer to the capture without the graph.
  std::shared_ptr<Graph> finish(Capture& capture);

  Session& session;
  mutable std::mutex mutex;
  std::map<uint64_t, Place> streams, events;
  uint64_t lastId = 0;
  std::atomic<uint32_t> active{0}, capturedEvents{0};
};

}  // namespace vgpu::client
