#include "intercept/session/graph/captures.h"

#include <algorithm>
#include <set>

#include "intercept/session/graph/edge-ports.h"
#include "intercept/session/graph/owned-memory.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

namespace {

// Of two different edges from one node neither keeps its port, as in the driver.
void merge(std::vector<GraphEdge>& to, const std::vector<GraphEdge>& from) {
  for (auto& edge : from) {
    auto known = std::ranges::find(to, edge.from, &GraphEdge::from);
    if (known == to.end()) to.push_back(edge);
    else if (!isSame(known->data, edge.data)) known->data = {};
  }
}

// The nodes from which the nodes of `tail` can be reached, including those.
std::vector<const GraphNode*> ancestorsOf(const std::vector<GraphEdge>& tail) {
  std::vector<const GraphNode*> ahead;
  std::set<const GraphNode*> seen;
  auto take = [&](const GraphEdge& edge) {
    if (seen.insert(edge.from).second) ahead.push_back(edge.from);
  };
  for (auto& edge : tail) take(edge);
  for (size_t i = 0; i < ahead.size(); ++i)
    for (auto& edge : ahead[i]->before) take(edge);
  std::ranges::sort(ahead);
  return ahead;
}

}  // namespace

// Work in the legacy stream waits for every blocking stream of its device, except those of green contexts.
Captures::Capture* Captures::implicatedBy(const Thread& thread, uint64_t stream) const {
  if (stream != 0) return nullptr;
  for (auto& [other, place] : streams) {
    if (handleDevice(other) != thread.device()) continue;
    auto* state = session.handles.find<api::Kind::STREAM>(other);
    if (state == nullptr || (state->flags.load(std::memory_order_relaxed) & CU_STREAM_NON_BLOCKING) != 0) continue;
    const uint64_t context = state->context.load(std::memory_order_relaxed);
    if (session.contexts.ownerOf(context) != context) continue;
    return place.capture.get();
  }
  return nullptr;
}

bool Captures::invalidatesBy(const Thread& thread, uint64_t stream) {
  Capture* implicated = implicatedBy(thread, stream);
  if (implicated != nullptr) implicated->invalidated = true;
  return implicated != nullptr;
}

CUresult Captures::begin(Thread& thread, uint64_t stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                         std::vector<GraphEdge> tail) {
  if (stream == 0) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard lock(mutex);
  if (streams.contains(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>(Capture{++lastId, mode, &thread, stream, std::move(graph)});
  streams[stream] = {capture, std::move(tail)};
  ++active;
  return CUDA_SUCCESS;
}

bool Captures::isJoined(const Place& place, const std::vector<const GraphNode*>& joined) {
  return std::ranges::all_of(place.tail,
                             [&](auto& edge) { return std::ranges::binary_search(joined, static_cast<const GraphNode*>(edge.from)); });
}

std::shared_ptr<Graph> Captures::finish(Capture& capture) {
  std::erase_if(streams, [&](auto& one) { return one.second.capture.get() == &capture; });
  for (auto& [event, place] : events)
    if (place.capture.get() == &capture) place.tail.clear();
  capture.ended = true;
  --active;
  return std::move(capture.graph);
}

CUresult Captures::end(Thread& thread, uint64_t stream, std::shared_ptr<Graph>& graph) {
  std::shared_ptr<Graph> captured;  // destroyed after the lock is released: it may be the last reference
  std::lock_guard lock(mutex);
  auto found = streams.find(stream);
  if (found == streams.end()) return CUDA_ERROR_ILLEGAL_STATE;
  std::shared_ptr<Capture> capture = found->second.capture;
  if (capture->origin != stream) {
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  auto joined = ancestorsOf(found->second.tail);
  bool areJoined = std::ranges::all_of(
      streams, [&](auto& one) { return one.second.capture != capture || isJoined(one.second, joined); });
  captured = finish(*capture);
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &thread) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (!areJoined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  graph = std::move(captured);
  return CUDA_SUCCESS;
}

CUresult Captures::look(Thread& thread, uint64_t stream, Info& info) {
  std::lock_guard lock(mutex);
  if (implicatedBy(thread, stream) != nullptr) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  auto found = streams.find(stream);
  if (found == streams.end()) return CUDA_SUCCESS;
  auto& [capture, tail, nodes, edges] = found->second;
  info = {CU_STREAM_CAPTURE_STATUS_INVALIDATED};
  if (capture->invalidated) return CUDA_SUCCESS;
  nodes.clear(), edges.clear();
  for (auto& edge : tail) {
    nodes.push_back(fromWire<CUgraphNode>(edge.from->handle));
    edges.push_back(edge.data);
  }
  info = {CU_STREAM_CAPTURE_STATUS_ACTIVE, capture->id, capture->graph, nodes, edges};
  return CUDA_SUCCESS;
}

CUresult Captures::setTail(uint64_t stream, std::vector<GraphEdge> tail, bool replaces) {
  std::lock_guard lock(mutex);
  auto found = streams.find(stream);
  if (found == streams.end()) return CUDA_ERROR_ILLEGAL_STATE;
  if (found->second.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (replaces) found->second.tail.clear();
  merge(found->second.tail, tail);
  return CUDA_SUCCESS;
}

CUresult Captures::addNode(Place& place, NodeWork& work, bool overlaps) {
  Capture& capture = *place.capture;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  // A driver accepts fills of any memory here, and refuses them when the graph is instantiated.
  const bool isFill = std::holds_alternative<FillWork>(work);
  if (!isFill && !mayName(session.graphMemories, capture.graph->conditions, work)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult refused = capture.graph->admits(work)) {
    if (refused != CUDA_ERROR_NOT_SUPPORTED) return refused;
    capture.invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (std::holds_alternative<EmptyWork>(work)) return CUDA_SUCCESS;  // a copy or fill of 0 bytes
  for (auto& edge : place.tail)
    if (overlaps && edge.from->type() == CU_GRAPH_NODE_TYPE_KERNEL) edge.data = programmaticEdge;
  GraphNode& node = capture.graph->add(std::move(work), std::move(place.tail));
  place.tail = {{&node}};
  return CUDA_SUCCESS;
}

std::optional<CUresult> Captures::add(Thread& thread, uint64_t stream, const Describe& describe, bool overlaps) {
  std::shared_ptr<Capture> capture;
  NodeWork work;
  {
    std::lock_guard lock(mutex);
    if (invalidatesBy(thread, stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    auto found = streams.find(stream);
    if (found == streams.end()) return std::nullopt;
    capture = found->second.capture;
    if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  CUresult described = describe(work);
  std::lock_guard lock(mutex);
  auto found = streams.find(stream);
  // Another thread has ended the capture in between.
  if (found == streams.end() || found->second.capture != capture) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (described == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) capture->invalidated = true;
  return described != CUDA_SUCCESS ? described : addNode(found->second, work, overlaps);
}

CUresult Captures::refuse(Thread& thread, uint64_t stream) {
  std::lock_guard lock(mutex);
  if (invalidatesBy(thread, stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  auto found = streams.find(stream);
  if (found == streams.end()) return CUDA_SUCCESS;
  found->second.capture->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// Source: cuda.h, cuThreadExchangeStreamCaptureMode.
CUresult Captures::refuseUnsafe(Thread& thread) {
  if (thread.captureMode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  std::lock_guard lock(mutex);
  bool isForbidden = false;
  for (auto& [stream, place] : streams) {
    Capture& capture = *place.capture;
    if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    bool isGlobal = capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread.captureMode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (capture.thread != &thread && !isGlobal) continue;
    capture.invalidated = isForbidden = true;
  }
  return isForbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult Captures::refuseOnDevice(unsigned device) {
  std::lock_guard lock(mutex);
  bool isForbidden = false;
  for (auto& [stream, place] : streams)
    if (handleDevice(stream) == device) place.capture->invalidated = isForbidden = true;
  return isForbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

std::optional<CUresult> Captures::record(Thread& thread, uint64_t event, uint64_t stream, bool isExternal, const CUgraphEdgeData& edge) {
  if (isExternal)
    return add(thread, stream, [&](NodeWork& work) { return work = EventWork{event, false}, CUDA_SUCCESS; });
  std::lock_guard lock(mutex);
  if (invalidatesBy(thread, stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  auto found = streams.find(stream);
  if (found == streams.end()) {
    events.erase(event);  // the event's last record is no longer a captured one
  } else {
    if (found->second.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    Place& place = events[event] = {found->second.capture, found->second.tail};
    for (auto& each : place.tail)
      if (hasPort(edge)) each.data = edge;
  }
  capturedEvents = static_cast<uint32_t>(events.size());
  return found == streams.end() ? std::nullopt : std::optional(CUDA_SUCCESS);
}

std::optional<CUresult> Captures::wait(Thread& thread, uint64_t event, uint64_t stream, bool isExternal) {
  if (isExternal)
    return add(thread, stream, [&](NodeWork& work) { return work = EventWork{event, true}, CUDA_SUCCESS; });
  std::lock_guard lock(mutex);
  if (invalidatesBy(thread, stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  auto at = streams.find(stream);
  auto captured = events.find(event);
  if (captured == events.end()) {
    if (at == streams.end()) return std::nullopt;
    at->second.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  std::shared_ptr<Capture> capture = captured->second.capture;
  if (capture->ended) return CUDA_ERROR_INVALID_VALUE;
  if (at != streams.end() && at->second.capture != capture) {
    at->second.capture->invalidated = capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream == 0) {
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  Place& place = streams[stream];
  place.capture = capture;
  merge(place.tail, captured->second.tail);
  return CUDA_SUCCESS;
}

CUresult Captures::refuseEvent(uint64_t event) {
  std::lock_guard lock(mutex);
  auto found = events.find(event);
  if (found == events.end()) return CUDA_SUCCESS;
  Capture& capture = *found->second.capture;
  if (capture.ended || capture.invalidated) return CUDA_ERROR_INVALID_VALUE;
  capture.invalidated = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

void Captures::forgetEvent(uint64_t event) {
  std::lock_guard lock(mutex);
  events.erase(event);
  capturedEvents = static_cast<uint32_t>(events.size());
}

void Captures::forgetNode(const GraphNode& node) {
  std::lock_guard lock(mutex);
  for (auto* places : {&streams, &events})
    for (auto& [handle, place] : *places) std::erase_if(place.tail, [&](auto& edge) { return edge.from == &node; });
}

// If the capture began in this stream, nobody can end it any more.
void Captures::leave(uint64_t stream) {
  std::shared_ptr<Graph> unfinished;  // destroyed after the lock is released
  std::lock_guard lock(mutex);
  auto found = streams.find(stream);
  if (found == streams.end()) return;
  std::shared_ptr<Capture> capture = found->second.capture;
  capture->invalidated = true;
  if (capture->origin == stream)
    unfinished = finish(*capture);
  else
    streams.erase(found);
}

}  // namespace vgpu::client
