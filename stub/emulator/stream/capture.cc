// Captures streams into graphs instead of running their work.
#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph.h"

namespace vgpu::emulator::api {
namespace {

thread_local CUstreamCaptureMode threadMode = CU_STREAM_CAPTURE_MODE_GLOBAL;
std::atomic<unsigned long long> nextCaptureId{1};
std::atomic<int> activeCaptures{0};  // lets calls outside of captures return after one load

// The given nodes and all nodes on which they depend.
std::vector<const GraphNode*> ancestors(const std::vector<GraphNode*>& nodes) {
  std::vector<const GraphNode*> seen(nodes.begin(), nodes.end());
  for (size_t i = 0; i < seen.size(); ++i) {
    for (const GraphNode* each : seen[i]->before) {
      if (std::find(seen.begin(), seen.end(), each) == seen.end()) seen.push_back(each);
    }
  }
  return seen;
}

void addMissing(std::vector<GraphNode*>& to, const std::vector<GraphNode*>& from) {
  for (GraphNode* node : from) {
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }
}

}  // namespace

void refuseDuringCapture(Driver& driver) {
  if (activeCaptures == 0 || threadMode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  std::lock_guard lock(driver.graphMutex);
  bool forbidden = false;
  for (const std::weak_ptr<Capture>& weak : driver.captures) {
    std::shared_ptr<Capture> capture = weak.lock();
    if (!capture || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    bool mine = capture->thread == std::this_thread::get_id();
    bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && threadMode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !global) continue;
    capture->invalidated = true;
    forbidden = true;
  }
  if (forbidden) refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

// The first two are called with the stream set's mutex held.

void StreamSet::recordOperation(Stream& stream, Operation operation, std::shared_ptr<Event> event,
                                std::shared_ptr<Graph> child) {
  std::lock_guard lock(context.driver.graphMutex);
  if (stream.capture->invalidated) refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  std::shared_ptr<GraphNode> node = stream.capture->graph->add(std::move(operation), stream.captureTail);
  node->event = std::move(event);
  node->child = std::move(child);
  stream.captureTail = {node.get()};
}

void StreamSet::refuseImplicit(const Stream& stream) {
  if (activeCaptures == 0 || stream.kind != Stream::Kind::legacy) return;
  for (const std::weak_ptr<Stream>& weak : created) {
    std::shared_ptr<Stream> each = weak.lock();
    if (!each || !each->blocking() || !each->capture) continue;
    std::lock_guard lock(context.driver.graphMutex);
    each->capture->invalidated = true;
    refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
}

bool Stream::capturing() {
  if (activeCaptures == 0) return false;
  std::lock_guard streams(context.streams.mutex);
  return capture != nullptr;
}

void Stream::refuseCapturing() {
  if (activeCaptures == 0) return;
  std::lock_guard streams(context.streams.mutex);
  if (!capture) return;
  std::lock_guard lock(context.driver.graphMutex);
  capture->invalidated = true;
  refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void Event::refuseCaptured() {
  std::shared_ptr<Capture> captured;
  {
    std::lock_guard lock(mutex);
    captured = capture.lock();
  }
  if (!captured) return;
  std::lock_guard lock(context.driver.graphMutex);
  captured->invalidated = true;
  refuse(CUDA_ERROR_CAPTURED_EVENT);
}

bool Stream::recordCaptured(const std::shared_ptr<Event>& event, bool external) {
  if (activeCaptures == 0) return false;
  std::lock_guard streams(context.streams.mutex);
  if (!capture) return false;
  if (external) {
    context.streams.recordOperation(*this, {.weight = Weight::light, .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD}, event,
                                    nullptr);
    return true;
  }
  std::lock_guard lock(event->mutex);
  event->capture = capture;
  event->captureNodes = captureTail;
  return true;
}

bool Stream::waitCaptured(const std::shared_ptr<Event>& event, bool external) {
  if (activeCaptures == 0) return false;
  std::lock_guard streams(context.streams.mutex);
  std::shared_ptr<Capture> captured;
  std::vector<GraphNode*> nodes;
  {
    std::lock_guard lock(event->mutex);
    captured = event->capture.lock();
    nodes = event->captureNodes;
  }
  if (capture && external) {
    context.streams.recordOperation(*this, {.weight = Weight::light, .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT}, event,
                                    nullptr);
    return true;
  }
  if (!captured && !capture) return false;
  std::lock_guard lock(context.driver.graphMutex);
  if (!captured || (capture && capture != captured)) {
    capture->invalidated = true;
    refuse(captured ? CUDA_ERROR_STREAM_CAPTURE_MERGE : CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  if (captured->invalidated) refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (!capture) captureTail.clear();
  capture = captured;
  addMissing(captureTail, nodes);
  return true;
}

void Stream::beginCapture(std::shared_ptr<Graph> graph, CUstreamCaptureMode mode, std::vector<GraphNode*> after) {
  if (kind == Kind::legacy) refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  std::lock_guard streams(context.streams.mutex);
  std::lock_guard lock(context.driver.graphMutex);
  if (capture) refuse(CUDA_ERROR_ILLEGAL_STATE);
  capture =
      std::make_shared<Capture>(Capture{std::move(graph), mode, std::this_thread::get_id(), this, nextCaptureId++});
  captureTail = std::move(after);
  std::erase_if(context.driver.captures, [](const std::weak_ptr<Capture>& gone) { return gone.expired(); });
  context.driver.captures.push_back(capture);
  ++activeCaptures;
}

std::vector<GraphNode*> StreamSet::leaveCapture(const std::shared_ptr<Capture>& capture) {
  std::lock_guard streams(mutex);
  std::lock_guard lock(context.driver.graphMutex);
  std::vector<GraphNode*> tails;
  auto release = [&](Stream& each) {
    if (each.capture != capture) return;
    addMissing(tails, each.captureTail);
    each.capture = nullptr;
    each.captureTail.clear();
  };
  for (const std::weak_ptr<Stream>& weak : created) {
    if (std::shared_ptr<Stream> each = weak.lock()) release(*each);
  }
  for (const auto& [thread, each] : perThread) release(*each);
  return tails;
}

// The capture may include streams of other contexts: each context's streams are locked separately.
std::shared_ptr<Graph> StreamSet::endCapture(Stream& stream) {
  std::shared_ptr<Capture> capture;
  std::vector<const GraphNode*> joined;
  {
    std::lock_guard streams(mutex);
    std::lock_guard lock(context.driver.graphMutex);
    capture = stream.capture;
    if (!capture) refuse(CUDA_ERROR_ILLEGAL_STATE);
    if (capture->origin != &stream) {
      capture->invalidated = true;
      refuse(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
      refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }
    joined = ancestors(stream.captureTail);
  }
  std::vector<GraphNode*> tails;
  context.driver.contexts.forEach([&](Context& each) {
    if (each.alive) addMissing(tails, each.streams.leaveCapture(capture));
  });
  std::lock_guard lock(context.driver.graphMutex);
  --activeCaptures;
  if (capture->invalidated) refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  for (const GraphNode* node : tails)
    if (std::find(joined.begin(), joined.end(), node) == joined.end()) refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  return capture->graph;
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

namespace {

bool isMode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

}  // namespace

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return enterContext([&](Context& context) {
    require(isMode(mode));
    streamOf(context, handle)->beginCapture(std::make_shared<Graph>(context.driver), mode, {});
  });
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graphHandle, const CUgraphNode* after,
                                             const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  return enterContext([&](Context& context) {
    require(isMode(mode) && (count == 0 || after != nullptr));
    std::shared_ptr<Graph> graph = context.driver.graphs.get(graphHandle);
    std::vector<GraphNode*> nodes;
    for (size_t i = 0; i < count; ++i) {
      nodes.push_back(context.driver.graphNodes.get(after[i]).get());
      require(nodes.back()->graph == graph.get());
    }
    streamOf(context, handle)->beginCapture(graph, mode, std::move(nodes));
  });
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return enterContext([&](Context& context) {
    require(graph != nullptr);
    *graph = nullptr;
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    std::shared_ptr<Graph> captured = stream->context.streams.endCapture(*stream);
    *graph = captured->handle ? captured->handle : context.driver.graphs.add(captured);
  });
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return cuStreamGetCaptureInfo_v3(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** after, const CUgraphEdgeData** edges,
                                           size_t* count) {
  return enterContext([&](Context& context) {
    require(status != nullptr);
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    Stream::CaptureState state = stream->captureState();
    *status = !state.capture               ? CU_STREAM_CAPTURE_STATUS_NONE
              : state.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return;
    if (id) *id = state.capture->id;
    if (graph) {
      if (!state.capture->graph->handle) context.driver.graphs.add(state.capture->graph);
      *graph = state.capture->graph->handle;
    }
    // The driver owns the list until the thread's next call of this kind.
    thread_local std::vector<CUgraphNode> answered;
    answered = state.tail;
    if (after) *after = answered.data();
    if (edges) *edges = nullptr;
    if (count) *count = answered.size();
  });
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** after, size_t* count) {
  return cuStreamGetCaptureInfo_v3(handle, status, id, graph, after, nullptr, count);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* nodes, const CUgraphEdgeData*,
                                                      size_t count, unsigned flags) {
  return enterContext([&](Context& context) {
    require(count == 0 || nodes != nullptr);
    require(flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES || flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    std::vector<GraphNode*> wanted;
    for (size_t i = 0; i < count; ++i) wanted.push_back(context.driver.graphNodes.get(nodes[i]).get());
    streamOf(context, handle)->changeTail(wanted, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  });
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return enterDriver([&](Driver&) {
    require(mode != nullptr && isMode(*mode));
    std::swap(*mode, threadMode);
  });
}

namespace vgpu::emulator::api {

Stream::CaptureState Stream::captureState() {
  std::lock_guard streams(context.streams.mutex);
  CaptureState state{capture, {}};
  for (const GraphNode* node : captureTail) state.tail.push_back(node->handle);
  return state;
}

void Stream::changeTail(const std::vector<GraphNode*>& nodes, bool replace) {
  std::lock_guard streams(context.streams.mutex);
  std::lock_guard lock(context.driver.graphMutex);
  if (!capture) refuse(CUDA_ERROR_ILLEGAL_STATE);
  for (const GraphNode* node : nodes) require(node->graph == capture->graph.get());
  if (replace) captureTail.clear();
  addMissing(captureTail, nodes);
}

}  // namespace vgpu::emulator::api
