// Objects of libraries, and their calls (stub/worker/library-call.h). A recipe makes the object; its settings are state, and are made again
// when all objects exist. A library's own device memory is not the session's: it is allocated again with the objects.
#include <fmt/format.h>
#include <kj/debug.h>
#include <spdlog/spdlog.h>

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "stub/worker/libraries.h"
#include "stub/worker/library-call.h"
#include "vgpu/api/library-variables.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/hex.h"

namespace vgpu::stub {

using api::Does;

namespace {

template <typename Params>
LibraryCall callOf(Execution& on, const Params& p) {
  LibraryCall call(on, p.getEntry(), p.getSymbol(), p.getHostMask(), p.getArguments());
  if constexpr (requires { p.getStream(); }) call.stream = p.getStream();
  return call;
}

// A call that runs on the thread of slow calls, with all that it needs.
struct SlowLibraryCall {
  template <typename Params>
  SlowLibraryCall(Execution& on, const Params& p)
      : given(kj::heapArray(p.getArguments())), call(on, p.getEntry(), p.getSymbol(), p.getHostMask(), given, buffers) {
    if constexpr (requires { p.getStream(); }) call.stream = p.getStream();
  }

  const kj::Array<kj::byte> given;  // a copy: the frame is gone when the call ends
  LibraryBuffers buffers;
  LibraryCall call;
};

// `end` gets the finished call, and gives the reply's result.
template <typename Params, typename End>
CUresult makeBeside(Execution& on, const Params& p, Reply& reply, End end) {
  auto late = std::make_shared<SlowLibraryCall>(on, p);
  if (CUresult error = late->call.prepare()) return error;
  auto work = [&on, late] {
    on.moduleGroups.letLibraryLoad();
    late->call.makeCall();
    return CUDA_SUCCESS;
  };
  reply.putOff({work, [late, end](CUresult, Reply& to) { return end(late->call, to); }});
  return CUDA_SUCCESS;
}

// The first call of an entry may load modules of the library. If these have no place yet, the call runs as a slow call, after the program's
// modules that are being loaded. `stream`: the stream that gets work, if any.
template <typename Results, typename Params>
CUresult answer(Execution& on, const Params& p, Reply& reply, std::optional<uint64_t> stream = std::nullopt) {
  if (!on.moduleGroups.mayLibraryLoad())
    return makeBeside(on, p, reply, [&on, stream](LibraryCall& call, Reply& to) {
      if (stream) on.stream(*stream);
      call.finish(0);
      call.reply<Results>(to);
      return CUDA_SUCCESS;
    });
  if (stream) on.stream(*stream);
  auto call = callOf(on, p);
  if (CUresult error = call.run()) return error;
  call.template reply<Results>(reply);
  return CUDA_SUCCESS;
}

// A call is posted only if the same call has succeeded before, so the library has loaded what it needs. If the library refuses it now, the
// program gets the error at a later call.
template <typename Params>
CUresult post(Execution& on, const Params& p) {
  auto call = callOf(on, p);
  if (CUresult error = call.run()) return error;
  if (call.status == 0) return CUDA_SUCCESS;
  spdlog::error("{} returned {} for a posted call", call.entry->symbol, static_cast<int64_t>(call.status));
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace

// A slow call if it loads the library or makes a handle; a descriptor in host memory is made at once. Also returns an error if the library
// makes no object, because a recipe must make its object; the program gets the library's status.
CUresult libraryCreate(Execution& on, const api::FrameReader<api::Cuda::LibraryCreateParams>& p, Reply& reply) {
  auto end = [object = p.getObject()](LibraryCall& made, Reply& to) {
    made.finish(object);
    made.reply<api::Cuda::LibraryCreateResults>(to);
    return made.madeResult();
  };
  api::useLibraryVariables({p.getVariables().begin(), p.getVariables().size()});
  auto call = callOf(on, p);
  if (!call.isQuick()) return makeBeside(on, p, reply, end);
  if (CUresult error = call.prepare()) return error;
  call.makeCall();
  return end(call, reply);
}
CUresult libraryCall(Execution& on, const api::FrameReader<api::Cuda::LibraryCallParams>& p, Reply& reply) {
  return answer<api::Cuda::LibraryCallResults>(on, p, reply, p.getStream());
}
CUresult libraryAsk(Execution& on, const api::FrameReader<api::Cuda::LibraryAskParams>& p, Reply& reply) {
  return answer<api::Cuda::LibraryAskResults>(on, p, reply);
}
CUresult libraryPost(Execution& on, const api::FrameReader<api::Cuda::LibraryPostParams>& p, Reply&) {
  on.stream(p.getStream());
  return post(on, p);
}
CUresult librarySet(Execution& on, const api::FrameReader<api::Cuda::LibrarySetParams>& p, Reply&) { return post(on, p); }

// Destroying a handle frees memory of the library, for which the driver waits. It is destroyed only when all work is done, so that this
// thread does not wait. The entry is absent if the program's context has ended, which is one of several on the driver's context, so that
// the object must be destroyed here, or if the memory that held the object has ended.
CUresult libraryDestroy(Execution& on, const api::FrameReader<api::Cuda::LibraryDestroyParams>& p, Reply&) {
  const api::LibraryEntry* entry = api::findLibraryEntry(p.getEntry());
  KJ_REQUIRE(entry == nullptr || entry->does == Does::destroy, "an entry that ends no object", entry->symbol);
  uint64_t real = on.handles.get(api::Kind::LIBRARY_OBJECT, p.getObject());
  const uint8_t type = knownLibraryObject(on, p.getObject()).type;
  if (entry != nullptr && !api::takes(*entry, entry->arguments[0].objectType, type)) return CUDA_ERROR_INVALID_HANDLE;
  on.handles.take(api::Kind::LIBRARY_OBJECT, p.getObject());
  bool isBusy = api::objectTypes[type].busy, isPlaced = on.library.take(p.getObject()).place != nullptr;
  if (entry == nullptr) entry = api::findLibraryEnd(type);
  std::string problem;
  void* destroy = entry == nullptr || isPlaced ? nullptr : on.session.libraries.find(*entry, problem);
  if (destroy == nullptr) return CUDA_SUCCESS;
  auto end = [destroy, real] {
    callByWords(destroy, &real, 1);
    return CUDA_SUCCESS;
  };
  return isBusy ? on.afterAllWork(end, Execution::DriverWaits::yes) : end();
}

namespace {

void drop(Execution& on) {
  std::lock_guard lock(on.library.mutex);
  on.library.objects.clear();
}

// A row: virtual handle, index among the object's settings, symbol and signature of the entry, mask, argument block.
Rows save(SessionState& session) {
  Rows rows;
  for (unsigned device = 0; device < session.deviceCount(); ++device) {
    if (session.isEnded(device)) continue;
    std::map<uint64_t, const KnownLibraryObject*> ordered;
    for (auto& [handle, object] : session.of(device).library.objects) ordered.emplace(handle, &object);
    for (auto& [handle, object] : ordered)
      for (uint64_t i = 0; i < object->settings.size(); ++i) {
        auto& setting = object->settings[i];
        rows.push_back({handle, i, std::string(api::findLibraryEntry(setting.entry)->symbol), setting.entry,
                        uint64_t{setting.hostMask}, hexOf(setting.block)});
      }
  }
  return rows;
}

bool isValid(const Row& row, uint64_t devices) {
  return handleDevice(numberIn(row, 0)) < devices && isHex(textIn(row, 5)) && numberIn(row, 4) <= UINT32_MAX;
}

// After all objects exist: a setting may name other objects.
void restore(SessionState& session, const Rows& rows) {
  for (auto& row : rows) {
    Execution& on = session.select(handleDevice(numberIn(row, 0)));
    on.moduleGroups.letLibraryLoad();
    auto block = bytesOf(textIn(row, 5));
    LibraryCall call(on, numberIn(row, 3), textIn(row, 2).c_str(), static_cast<uint32_t>(numberIn(row, 4)),
                     kj::arrayPtr(block.data(), block.size()).asBytes());
    if (call.runAgain() && call.status != 0)
      fail(fmt::format("the settings that {} made on the library's object {:#x} cannot be restored: the library returns {}", textIn(row, 2),
                       numberIn(row, 0), static_cast<int64_t>(call.status)));
  }
}

}  // namespace

const KindModule libraryKind{
    .name = "librarySettings", .drop = drop, .columns = "nnsnns", .isValid = isValid, .save = save, .restore = restore};

}  // namespace vgpu::stub
