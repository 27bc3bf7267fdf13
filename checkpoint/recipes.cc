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

// What a person knows an object by.
std::string nameOf(stub::SessionState& on, const ObjectId& id, const RecordedFrame& frame) {
  if (frame.method == api::Method::greenCreate)
    return fmt::format(" (of {} multiprocessors)", api::FrameReader<api::Cuda::GreenCreateParams>(frame.words).getMultiprocessors());
  if (id.kind != api::Kind::FUNCTION || handleDevice(id.handle) >= on.deviceCount()) return "";
  auto& functions = on.of(handleDevice(id.handle)).functions;
  auto found = functions.find(id.handle);
  return found == functions.end() ? "" : fmt::format(" (kernel {})", found->second.name);
}

// Modules that have ended, and whose images the worker has no more, with what was in them: functions and the like, which a graph that
// lives may name. The graph does without (stub/worker/kinds/graph.cc).
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
    // Its pages are the program's and full: giving them back belongs to the worker that did it.
    bool endsHostMemory = frame->method == api::Method::endHostLease || frame->method == api::Method::hostRelease;
    KJ_REQUIRE(!endsHostMemory, "a recipe that frees a part of the host arena", number);
    reply.reset();
    CUresult result = on.execute(frame->method, frame->device, frame->words, frame->position, 0, reply);
    // A library's call that was captured and names memory which has ended: a graph that has it is of no use, and was of none before.
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
