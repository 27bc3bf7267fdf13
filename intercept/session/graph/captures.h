// Streams that are captured: what the program gives them becomes nodes of a graph instead of frames. All of it is decided here,
// and the worker knows nothing of it (docs/graphs.md), so a suspend in the middle of a capture has nothing to do.
//
// Any thread; `mutex` guards everything but the counts, and after it only those of Graphs and GraphMemories are taken: what a node
// does is described, and a graph that nobody gets ends, without it. A call that captures nothing reads one count. All of it stays in
// the program over a suspend.
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

  // Whether any stream captures, and whether any event was last recorded in a stream that did.
  bool isActive() const { return active.load(std::memory_order_relaxed) != 0; }
  bool concernsEvents() const { return isActive() || capturedEvents.load(std::memory_order_relaxed) != 0; }

  // Streams are resolved handles. `graph`: to which nodes are added, behind `tail`.
  CUresult begin(Thread& thread, uint64_t stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph, std::vector<GraphEdge> tail);
  CUresult end(Thread& thread, uint64_t stream, std::shared_ptr<Graph>& graph);

  struct Info {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    std::shared_ptr<Graph> graph;
    // Behind which the next node comes: the program's to read until a call on the stream, or the end of the capture.
    std::span<const CUgraphNode> nodes;
    std::span<const CUgraphEdgeData> edges;
  };
  // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy stream beside a blocking stream that captures.
  CUresult look(Thread& thread, uint64_t stream, Info& info);
  // Adds to what the next node comes behind, or replaces it.
  CUresult setTail(uint64_t stream, std::vector<GraphEdge> tail, bool replaces);

  // For work in a stream, when isActive(). No value if it is to be executed: no capture is concerned. Else CUDA's result: of a node
  // that was added, which `describe` describes, or why there is none. `overlaps`: of a kernel that may begin before those that it
  // comes behind have ended.
  using Describe = std::function<CUresult(NodeWork&)>;
  std::optional<CUresult> add(Thread& thread, uint64_t stream, const Describe& describe, bool overlaps = false);
  // For a call that cannot be captured in a stream, success if it is to be executed.
  CUresult refuse(Thread& thread, uint64_t stream);
  // For a call that may wait for work or order it behind that of other streams, whichever stream captures.
  CUresult refuseUnsafe(Thread& thread);
  // For one that waits for all work of a device.
  CUresult refuseOnDevice(unsigned device);

  // For a record of an event and a wait for one, when concernsEvents(); as add().
  // `edge`: how what waits for the event comes behind the nodes before, if it does otherwise than they say.
  std::optional<CUresult> record(Thread& thread, uint64_t event, uint64_t stream, bool isExternal, const CUgraphEdgeData& edge = {});
  std::optional<CUresult> wait(Thread& thread, uint64_t event, uint64_t stream, bool isExternal);
  // For a question about an event.
  CUresult refuseEvent(uint64_t event);
  void forgetEvent(uint64_t event);
  // The node ends, as its graph's program wants.
  void forgetNode(const GraphNode& node);
  // The stream ends.
  void leave(uint64_t stream);

 private:
  struct Capture {
    uint64_t id;
    CUstreamCaptureMode mode;
    const Thread* thread;
    uint64_t origin;  // stream
    std::shared_ptr<Graph> graph;
    bool invalidated = false, ended = false;
  };
  // A stream that captures, or an event that was recorded in one.
  struct Place {
    std::shared_ptr<Capture> capture;
    std::vector<GraphEdge> tail;  // behind which the next node comes
    // The same, as a program that asked was told.
    std::vector<CUgraphNode> toldNodes = {};
    std::vector<CUgraphEdgeData> toldEdges = {};
  };

  // The capture that the thread's call on `stream` would touch from outside; nullptr if there is none.
  Capture* implicatedBy(const Thread& thread, uint64_t stream) const;
  bool invalidatesBy(const Thread& thread, uint64_t stream);
  CUresult addNode(Place& place, NodeWork& work, bool overlaps);
  static bool isJoined(const Place& place, const std::vector<const GraphNode*>& joined);
  // Returns the capture's graph: what other places keep of the capture has none.
  std::shared_ptr<Graph> finish(Capture& capture);

  Session& session;
  mutable std::mutex mutex;
  std::map<uint64_t, Place> streams, events;
  uint64_t lastId = 0;
  std::atomic<uint32_t> active{0}, capturedEvents{0};
};

}  // namespace vgpu::client
