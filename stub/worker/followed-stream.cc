// Makes a library handle's work go to the stream that the program means. That may be a different stream for each of the program's threads
// (CU_STREAM_PER_THREAD); without a setting it is the null stream, which under a green context is a stream of that context. The library
// knows only the driver's stream that it was given last. So a frame names the stream of its call, and if the library has another one, it is
// set first.
// A call for which the library waits runs in another stream if its own is held.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "stub/worker/library-call.h"

namespace vgpu::stub {

namespace {

bool isStreamNote(const api::LibraryNote& note) { return !note.holdsObject && note.member == api::Member::stream; }

// The row that sets the stream of an object of that type; end() if it has none.
auto findStreamRow(uint8_t type) {
  return std::ranges::find_if(api::libraryEntries, [type](const api::LibraryEntry& row) {
    return row.does == api::Does::set && row.arguments[0].objectType == type && std::ranges::any_of(row.notes, isStreamNote);
  });
}

}  // namespace

void LibraryCall::follow(const KnownLibraryObject& known, uint64_t handle) {
  auto row = findStreamRow(known.type);
  if (row == api::libraryEntries.end()) return;
  LibraryBuffers own;  // the buffers of this call are in use
  auto set = [&](uint64_t signature, uint32_t mask, std::span<const std::byte> block) {
    LibraryCall(on, signature, "a setting", mask, kj::arrayPtr(block.data(), block.size()).asBytes(), own).runAgain();
  };
  std::vector<uint64_t> words(row->arguments.size());
  words[0] = handle;
  words[std::ranges::find_if(row->notes, isStreamNote)->from] = *stream;
  // Setting a stream makes the library forget its workspace. Settings that were made after the stream's are made again.
  const auto settings = known.settings;
  auto behind = std::ranges::find(settings, row->signature, &LibrarySetting::entry);
  behind = behind == settings.end() ? settings.begin() : std::next(behind);
  set(row->signature, 0, std::as_bytes(std::span(words)));
  for (; behind != settings.end(); ++behind) set(behind->entry, behind->hostMask, behind->block);
}

// A library waits on this thread for results in host memory. The program has waited for the work before the call, but may meanwhile have
// given more work to the call's stream, or to a stream that it depends on; that work may wait for a frame after this one, which this thread
// could not execute. So the call goes into a stream that depends on nothing, and later work of the call's own stream is ordered after it.
// Meanwhile the handle uses the library's own workspace: the program's may be in use.
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
