// Calls of libraries in a stream that the program captures (docs/graphs.md). Only the library knows what such a call does. So it is called
// here while the driver captures the stream, and the resulting driver graph becomes a child of executable graphs.
//
// The call depends on the settings of its objects at the time when the program made it. Its frame carries them, because a recipe is
// executed before the settings are restored. Descriptors that the program has destroyed since still exist then, because the recipe depends
// on them.
#include <kj/debug.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "stub/worker/library-call.h"
#include "vgpu/api/captured-settings.h"

namespace vgpu::stub {

namespace {

// Whether `object` has the settings that it had at the call.
bool isAsThen(const KnownLibraryObject& known, const std::vector<api::CapturedSetting>& settings, uint64_t object) {
  auto setting = known.settings.begin();
  for (auto& then : settings) {
    if (then.object() != object) continue;
    if (setting == known.settings.end() || setting->entry != then.entry || setting->hostMask != then.hostMask ||
        setting->block.size() != then.block.size() ||
        std::memcmp(setting->block.data(), then.block.begin(), then.block.size()) != 0)
      return false;
    ++setting;
  }
  return setting == known.settings.end();
}

void setAsThen(Execution& on, const api::FrameReader<api::Cuda::LibraryCaptureParams>& p) {
  auto settings = api::readCapturedSettings(p.getSettings());
  auto objects = p.getObjects();
  for (size_t i = 0; i < objects.size(); ++i) {
    if (isAsThen(knownLibraryObject(on, objects[i]), settings, objects[i])) continue;
    for (auto& then : settings) {
      if (then.object() != objects[i]) continue;
      LibraryCall(on, then.entry, "a setting", then.hostMask, then.block).runAgain();
    }
  }
}

// Whether the graph has nodes that allocate or free memory, which a child graph cannot have.
bool allocates(const Driver& driver, CUgraph graph) {
  size_t count = 0;
  if (driver.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return true;
  std::vector<CUgraphNode> nodes(count);
  if (count != 0 && driver.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return true;
  return std::ranges::any_of(nodes, [&](CUgraphNode node) {
    CUgraphNodeType type;
    return driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
           type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  });
}

}  // namespace

CUresult libraryCapture(Execution& on, const api::FrameReader<api::Cuda::LibraryCaptureParams>& p, Reply& reply) {
  setAsThen(on, p);
  on.moduleGroups.letLibraryLoad();
  LibraryCall call(on, p.getEntry(), p.getSymbol(), p.getHostMask(), p.getArguments());
  call.stream = p.getStream();
  auto stream = fromWire<CUstream>(on.handles.get(api::Kind::STREAM, p.getStream()));
  if (CUresult error = on.driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED)) return error;
  CUresult result = call.run();
  CUgraph graph = nullptr;
  CUresult ended = on.driver.cuStreamEndCapture(stream, &graph);
  if (result == CUDA_SUCCESS) result = ended;
  bool isRefused = call.status != 0;
  if (result == CUDA_SUCCESS && !isRefused && allocates(on.driver, graph)) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result != CUDA_SUCCESS || isRefused) {
    if (graph != nullptr) on.driver.cuGraphDestroy(graph);
    graph = nullptr;
  }
  if (result != CUDA_SUCCESS) return result;
  if (graph != nullptr) on.handles.add(api::Kind::CAPTURED_CALL, p.getCall(), toWire(graph));
  call.reply<api::Cuda::LibraryCaptureResults>(reply);
  return !isRefused ? CUDA_SUCCESS : call.namesEnded ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult libraryCaptureEnd(Execution& on, const api::FrameReader<api::Cuda::LibraryCaptureEndParams>& p, Reply&) {
  auto graph = fromWire<CUgraph>(on.handles.take(api::Kind::CAPTURED_CALL, p.getCall()));
  return graph == nullptr ? CUDA_SUCCESS : on.driver.cuGraphDestroy(graph);
}

namespace {

CUresult destroyAll(Execution& on) {
  std::vector<uint64_t> ended;
  for (auto [handle, real] : on.handles.of(api::Kind::CAPTURED_CALL)) {
    if (CUresult error = real == 0 ? CUDA_SUCCESS : on.driver.cuGraphDestroy(fromWire<CUgraph>(real))) return error;
    ended.push_back(handle);
  }
  for (uint64_t handle : ended) on.handles.remove(api::Kind::CAPTURED_CALL, handle);
  return CUDA_SUCCESS;
}

}  // namespace

const KindModule capturedCallKind{.name = "capturedCalls", .destroy = destroyAll};

}  // namespace vgpu::stub
