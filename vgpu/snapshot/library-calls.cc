#include "vgpu/snapshot/library-calls.h"

#include <fmt/format.h>

#include "cuda-frames.h"
#include "vgpu/api/library.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::snapshot {

namespace {

template <typename Params>
void add(LibraryCalls& calls, kj::ArrayPtr<const capnp::word> message) {
  api::FrameReader<Params> frame(message);
  if (frame.getEntry() != 0) calls.try_emplace(frame.getEntry(), frame.getSymbol());
}

void add(LibraryCalls& calls, api::Method method, kj::ArrayPtr<const capnp::word> message) {
  switch (method) {
    case api::Method::libraryCreate:
    case api::Method::libraryCreateAgain: return add<api::Cuda::LibraryCreateParams>(calls, message);
    case api::Method::libraryCapture:
    case api::Method::libraryCaptureAgain: return add<api::Cuda::LibraryCaptureParams>(calls, message);
    case api::Method::libraryDestroy: return add<api::Cuda::LibraryDestroyParams>(calls, message);
    case api::Method::libraryPost: return add<api::Cuda::LibraryPostParams>(calls, message);
    case api::Method::libraryCall: return add<api::Cuda::LibraryCallParams>(calls, message);
    case api::Method::librarySet: return add<api::Cuda::LibrarySetParams>(calls, message);
    case api::Method::libraryAsk: return add<api::Cuda::LibraryAskParams>(calls, message);
    default: return;
  }
}

}  // namespace

void addLibraryCalls(LibraryCalls& calls, const std::vector<ObjectRecord>& records) {
  for (auto& record : records)
    for (auto& frame : record.recipe) add(calls, frame.method, frame.words);
}

void addLibraryCalls(LibraryCalls& calls, const PendingCalls& pending) {
  visitFrames(pending, [&](api::Method method, kj::ArrayPtr<const capnp::word> message) { add(calls, method, message); });
}

void requireKnownLibraryCalls(const LibraryCalls& calls, const Refusal& refuse) {
  for (auto& [signature, symbol] : calls) {
    const api::LibraryEntry* entry = api::findLibraryEntry(signature);
    if (entry == nullptr || symbol != entry->symbol)
      refuse(fmt::format("libraryCalls: this build has no call {} with these arguments; resume the snapshot with the version that "
                         "wrote it",
                         symbol));
  }
}

}  // namespace vgpu::snapshot
