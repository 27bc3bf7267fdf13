#include "checkpoint/recipes.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <map>
#include <set>

#include "stub/worker/kinds/kind.h"
#include "vgpu/base/fail.h"

namespace vgpu::checkpoint {

uint64_t bytesOf(const std::vector<ObjectRecord>& records) {
  uint64_t bytes = 0;
  for (auto& record : records)
    for (auto& frame : record.recipe) bytes += frame.words.asBytes().size();
  return bytes;
}

namespace {

// The name by which a person recognizes an object.
std::string nameOf(stub::SessionState& on, const ObjectId& id, const RecordedFrame& frame) {
  if (frame.method == api::Method::greenCreate)
    return fmt::format(" (of {} multiprocessors)", api::FrameReader<api::Cuda::GreenCreateParams>(frame.words).getMultiprocessors());
  if (id.kind != api::Kind::FUNCTION || handleDevice(id.handle) >= on.deviceCount()) return "";
  auto& functions = on.of(handleDevice(id.handle)).functions;
  auto found = functions.find(id.handle);
  return found == functions.end() ? "" : fmt::format(" (kernel {})", found->second.name);
}

// Unloaded modules whose images the worker does not have any more, with their functions and other children. A living graph may name them;
// it is restored without them (stub/worker/kinds/graph.cc).
std::set<uint64_t> imagelessOf(stub::SessionState& on, const std::vector<ObjectRecord>& records,
                               const std::function<bool(const RecordedFrame&)>& isExecuted) {
  std::set<uint64_t> modules, all;
  for (auto& record : records) {
    auto& made = record.recipe.front();
    if (!record.destroyed() || made.method != api::Method::moduleLoad || (isExecuted && isExecuted(made))) continue;
    const uint64_t image = api::FrameReader<api::Cuda::ModuleLoadParams>(made.words).getBlob();
    if (on.of(made.device).blobs.find(image) == nullptr) modules.insert(record.key());
  }
  for (auto& record : records)
    if (modules.contains(record.key()) || (record.parented && modules.contains(record.needs.front().record))) all.insert(record.key());
  return all;
}

}  // namespace

void rebuild(stub::SessionState& on, const std::vector<ObjectRecord>& records, const std::function<void(size_t)>& progress,
             const std::function<bool(const RecordedFrame&)>& isExecuted) {
  struct Step {
    const ObjectRecord* record;
    const RecordedFrame* frame;
  };
  std::map<uint64_t, Step> steps;
  const auto imageless = imagelessOf(on, records, isExecuted);
  for (auto& record : records)
    for (auto& frame : record.recipe)
      if (!imageless.contains(record.key()) && (!isExecuted || !isExecuted(frame))) steps.emplace(frame.number, Step{&record, &frame});
  stub::Reply reply;
  for (auto& [number, step] : steps) {
    auto& [record, frame] = step;
    // Its pages belong to the program and are in use: only the worker that first executed the frame may free them.
    bool endsHostMemory = frame->method == api::Method::endHostLease || frame->method == api::Method::hostRelease;
    KJ_REQUIRE(!endsHostMemory, "a recipe that frees a part of the host arena", number);
    reply.reset();
    CUresult result = on.execute(frame->method, frame->device, frame->words, frame->position, 0, reply);
    // A captured library call that names freed memory: the graph that contains it was unusable before, too.
    if (result == CUDA_ERROR_INVALID_VALUE && record->id.kind == api::Kind::CAPTURED_CALL)
      on.of(frame->device).handles.add(record->id.kind, record->id.handle, 0);
    else if (result != CUDA_SUCCESS)
      fail(fmt::format("the {} {:#x}{} cannot be created again on {}: {} at position {} returns {}{}", kindName(record->id.kind),
                       record->id.handle, nameOf(on, record->id, *frame), on.nameOf(frame->device), api::infoOf(frame->method).name,
                       frame->position, stub::nameOf(on.driver, result), stub::lacksCode(result)));
    progress(frame->words.asBytes().size());
  }
}

}  // namespace vgpu::checkpoint
