// The stream of a handle's work, as the program means it. What it has set may be a stream that is another one for each of its threads
// (CU_STREAM_PER_THREAD), and without a setting it is the null stream, which in a green context is a stream of that. The library knows the
// driver's stream that it was told last. So a frame says where its call's work goes, and the library is told first if it knows another.
// A call that it waits for is in another stream if its own is held.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "stub/worker/library-call.h"

namespace vgpu::stub {

namespace {

bool isStreamNote(const api::LibraryNote& note) { return !note.holdsObject && note.member == api::Member::stream; }

// The row that sets the stream of an object of that type; the end of all if it has none.
auto findStreamRow(uint8_t type) {
  return std::ranges::find_if(api::libraryEntries, [type](const api::LibraryEntry& row) {
    return row.does == api::Does::set && row.arguments[0].objectType == type && std::ranges::any_of(row.notes, isStreamNote);
  });
}

}  // namespace

void LibraryCall::follow(const KnownLibraryObject& known, uint64_t handle) {
  auto row = findStreamRow(known.type);
  if (row == api::libraryEntries.end()) return;
  LibraryBuffers own;  // those of this call are in use
  auto set = [&](uint64_t signature, uint32_t mask, std::span<const std::byte> block) {
    LibraryCall(on, signature, "a setting", mask, kj::arrayPtr(block.data(), block.size()).asBytes(), own).runAgain();
  };
  std::vector<uint64_t> words(row->arguments.size());
  words[0] = handle;
  words[std::ranges::find_if(row->notes, isStreamNote)->from] = *stream;
  // The library forgets a workspace when it is told a stream. What was set behind the stream is set again.
  const auto settings = known.settings;
  auto behind = std::ranges::find(settings, row->signature, &LibrarySetting::entry);
  behind = behind == settings.end() ? settings.begin() : std::next(behind);
  set(row->signature, 0, std::as_bytes(std::span(words)));
  for (; behind != settings.end(); ++behind) set(behind->entry, behind->hostMask, behind->block);
}

// What is written to host memory the library waits for, on this thread. The program has waited for what comes before it, but may have given
// its stream, or one that its stream comes behind, more since: that may wait for a frame which is not executed before this one. So the call
// goes into a stream that comes behind nothing, and what its own is given next comes behind that. Its workspace is the library's meanwhile:
// the program's may be in use.
CUresult LibraryCall::makeCallUnheld() {
  const bool waits = resultBytes != 0 && stream && entry->does == api::Does::work;
  auto row = waits && entry->arguments[0].what == api::Argument::object ? findStreamRow(entry->arguments[0].objectType)
                                                                       : api::libraryEntries.end();
  if (row == api::libraryEntries.end() || !on.gpu.progress.isHeld(*stream)) return makeCall(), CUDA_SUCCESS;
  void* setStream = on.session.libraries.find(*row, problem);
  CUstream apart = on.gpu.progress.apartStream();
  uint64_t told[] = {words[0], toWire(apart)};
  if (setStream == nullptr || apart == nullptr || row->arguments.size() != std::size(told) || callByWords(setStream, told, std::size(told)) != 0)
    return makeCall(), CUDA_SUCCESS;
  makeCall();
  follow(knownLibraryObject(on, buffers.block[0]), buffers.block[0]);
  return on.gpu.progress.comesBehindApart(*stream);
}

}  // namespace vgpu::stub
