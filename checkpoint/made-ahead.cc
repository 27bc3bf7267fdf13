#include "checkpoint/made-ahead.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/recipes.h"
#include "checkpoint/state.h"
#include "cuda-frames.h"
#include "stub/worker/execution.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/base/fail.h"

namespace vgpu::checkpoint {

namespace {

const Rows& rowsOf(const StateTables& state, const stub::KindModule& kind) {
  static const Rows none;
  auto found = state.find(kind.name);
  return found == state.end() ? none : found->second;
}

}  // namespace

bool MadeAhead::isOf(api::Kind kind) {
  return kind == api::Kind::MODULE || kind == api::Kind::FUNCTION || kind == api::Kind::VARIABLE || kind == api::Kind::LIBRARY_OBJECT;
}

void MadeAhead::end(stub::SessionState& on, const Made& object) {
  std::vector<capnp::word> words;
  api::Method method;
  if (object.id.kind == api::Kind::MODULE) {
    method = api::Method::moduleUnload;
    api::FrameBuilder<api::Cuda::ModuleUnloadParams>(words).setHmod(object.id.handle);
  } else {
    method = api::Method::libraryDestroy;
    api::FrameBuilder<api::Cuda::LibraryDestroyParams> frame(words);
    frame.setObject(object.id.handle);
    frame.setSymbol("");
  }
  stub::Reply reply;
  CUresult result = on.execute(method, object.device, kj::arrayPtr(words.data(), words.size()), 0, 0, reply);
  stub::require(on.driver, result, "destroying objects that were made ahead");
}

void MadeAhead::reduce(stub::SessionState& on, const StateTables& state, const std::vector<ObjectRecord>& records) {
  std::set<uint64_t> there, ended;
  for (auto& record : records) there.insert(record.key());
  for (auto& [key, object] : made)
    if (!there.contains(key)) ended.insert(object.root);
  for (unsigned device : on.usedDevices()) {
    auto& groups = on.select(device).moduleGroups;
    for (uint64_t module : groups.othersThan(rowsOf(state, stub::moduleGroupKind), rowsOf(state, stub::moduleBlockKind))) {
      auto found = std::ranges::find_if(made, [module](auto& each) { return each.second.id == ObjectId{api::Kind::MODULE, module}; });
      if (found == made.end()) groups.disclaim(module);
      else ended.insert(found->first);
    }
  }
  for (uint64_t root : ended) end(on, made.at(root));
  std::erase_if(made, [&](auto& each) {
    if (!ended.contains(each.second.root)) return false;
    for (uint64_t number : each.second.frames) frames.erase(number);
    return true;
  });
  for (unsigned device : on.usedDevices())
    stub::require(on.driver, on.select(device).moduleGroups.endGroups(), "unloading modules that were loaded ahead");
}

void MadeAhead::follow(stub::SessionState& on, const StateTables& state, const std::vector<ObjectRecord>& records) {
  for (auto& record : records)
    if (!isOf(record.id.kind) || record.parented != (record.id.kind == api::Kind::FUNCTION || record.id.kind == api::Kind::VARIABLE))
      fail(fmt::format("the {} {:#x} cannot be created before its session arrives", kindName(record.id.kind), record.id.handle));
  reduce(on, state, records);
  stub::planModules(on, records);
  runStep(on, state, &stub::KindModule::prepare);
  // Settings must be applied in order with the frames of other objects: a graph may contain a kernel whose shared memory limit was lowered
  // later.
  auto isLeft = [this](const RecordedFrame& frame) { return has(frame) || api::infoOf(frame.method).isSetting; };
  rebuild(on, records, [](size_t) {}, isLeft);
  for (auto& record : records) {
    auto& object = made[record.key()];
    object = {record.id, record.device, record.parented ? record.needs.front().record : record.key(), {}};
    for (auto& frame : record.recipe) {
      if (api::infoOf(frame.method).isSetting) continue;
      object.frames.push_back(frame.number);
      frames.insert(frame.number);
    }
  }
}

}  // namespace vgpu::checkpoint
