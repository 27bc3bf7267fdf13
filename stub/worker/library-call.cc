#include "stub/worker/library-call.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu::stub {

using api::Argument, api::Does, api::HostRange;

namespace {

// Upper bound of a scalar's size. This many words follow the buffers, so a library that reads or writes a scalar stays inside them,
// whatever the frame says.
constexpr size_t slackWords = 32;

std::byte* bytesOf(std::vector<uint64_t>& words) { return std::as_writable_bytes(std::span(words)).data(); }

}  // namespace

KnownLibraryObject& knownLibraryObject(Execution& on, uint64_t handle) {
  KnownLibraryObject* known = on.session.of(handleDevice(handle)).library.find(handle);
  if (known == nullptr) throw BadHandle{api::Kind::LIBRARY_OBJECT, handle};
  return *known;
}

LibraryCall::LibraryCall(Execution& on, uint64_t signature, kj::StringPtr symbol, uint32_t hostMask,
                         kj::ArrayPtr<const kj::byte> block, LibraryBuffers& buffers)
    : on(on), mine(on.library), buffers(buffers), hostMask(hostMask), given(block) {
  auto known = mine.functions.find(signature);
  if (known != mine.functions.end()) {
    entry = known->second.entry;
    function = known->second.function;
  } else if (entry = api::findLibraryEntry(signature); entry == nullptr) {
    fail(fmt::format("{} is a library call that this build does not have, or has with other arguments", symbol.cStr()));
  }
}

CUresult LibraryCall::run(uint64_t object) {
  if (CUresult error = prepare()) return error;
  CUresult result = makeCallUnheld();
  finish(object);
  return result;
}

CUresult LibraryCall::prepare() {
  on.session.residue = "it has called a library of the GPU's host, whose effects on the process are unknown";
  read();
  for (size_t i = 0; i < entry->arguments.size(); ++i)
    if (CUresult error = translate(i)) return error;
  replaceHeld();
  return CUDA_SUCCESS;
}

void LibraryCall::makeCall() {
  if (function == nullptr) function = on.session.libraries.find(*entry, problem);
  if (function == nullptr) {
    status = api::libraryAbsent;
    return;
  }
  uint64_t returned = callByWords(function, words, entry->arguments.size());
  status = entry->returnsStatus ? static_cast<uint32_t>(returned) : returned;
  isMade = status == 0 || !entry->returnsStatus;
}

void LibraryCall::finish(uint64_t object) {
  if (function != nullptr) mine.functions.try_emplace(entry->signature, LibraryFunction{entry, function});
  if (!isMade) return;
  if (entry->does == Does::create) keepObject(object);
  if (entry->does == Does::set) keepSetting();
}

bool LibraryCall::isQuick() const {
  const bool isLoaded = function != nullptr || on.session.libraries.isLoaded(entry->library);
  return isLoaded && api::objectTypes[entry->arguments[api::madeArgument(*entry)].objectType].inPlaceBytes != 0;
}

// Copies the block; the frame is not read afterwards.
void LibraryCall::read() {
  const size_t wordBytes = entry->arguments.size() * sizeof(uint64_t);
  KJ_REQUIRE(given.size() >= wordBytes, "an argument block without its words", entry->symbol, given.size());
  buffers.block.assign((given.size() + 7) / 8 + slackWords, 0);
  std::memcpy(buffers.block.data(), given.begin(), given.size());
  std::copy_n(buffers.block.begin(), entry->arguments.size(), words);
  size_t bytes = 0;
  for (size_t i = 0; i < entry->arguments.size(); ++i)
    if (isHost(i) && isWritten(entry->arguments[i].what)) bytes += roundUp(HostRange::of(words[i]).bytes, api::libraryResultAlignment);
  KJ_REQUIRE(bytes <= maxReplyBytes, "results are larger than a reply", entry->symbol, bytes);
  buffers.results.assign(bytes / 8 + slackWords, 0);
}

CUresult LibraryCall::translate(size_t i) {
  auto& argument = entry->arguments[i];
  uint64_t& word = words[i];
  switch (argument.what) {
    case Argument::value: return CUDA_SUCCESS;
    case Argument::object:
      if (word != 0) word = realOf(word, argument.objectType);
      return CUDA_SUCCESS;
    case Argument::made: word = toWire(&made); return CUDA_SUCCESS;
    case Argument::place:
      place = std::make_unique<std::byte[]>(api::objectTypes[argument.objectType].inPlaceBytes);
      made = word = toWire(place.get());
      return CUDA_SUCCESS;
    case Argument::stream:
      word = entry->does == Does::work ? toWire(on.stream(word)) : on.handles.getOrNull(api::Kind::STREAM, word);
      return CUDA_SUCCESS;
    default: return isHost(i) ? placeHost(i) : reach(word);
  }
}

uint64_t LibraryCall::realOf(uint64_t handle, uint8_t wanted) {
  uint64_t real = on.handles.get(api::Kind::LIBRARY_OBJECT, handle);
  auto& known = knownLibraryObject(on, handle);
  if (!api::takes(*entry, wanted, known.type)) throw BadHandle{api::Kind::LIBRARY_OBJECT, handle};
  if (stream && *stream != known.stream && entry->streamFrom == api::noArgument) follow(known, handle);
  return real;
}

CUresult LibraryCall::placeHost(size_t i) {
  auto& argument = entry->arguments[i];
  KJ_REQUIRE(isRead(argument.what) || isWritten(argument.what), "an argument is not a pointer to host memory", entry->symbol, i);
  auto range = HostRange::of(words[i]);
  bool isGiven = range.offset != 0;
  KJ_REQUIRE(!isGiven || (range.offset % 8 == 0 && range.offset <= given.size() && range.bytes <= given.size() - range.offset),
             "bytes that extend past the end of their argument block", entry->symbol, i);
  KJ_REQUIRE(isGiven || isWritten(argument.what), "bytes to be read are missing", entry->symbol, i);
  // An array's length is given by another argument; for a scalar slackWords are always enough.
  KJ_REQUIRE(argument.count == api::noArgument ||
                 range.bytes >= api::pointedBytes(*entry, i, std::span(buffers.block.data(), entry->arguments.size()), 0),
             "an array is shorter than its length", entry->symbol, i);
  std::byte* at = bytesOf(buffers.block) + range.offset;
  if (isWritten(argument.what)) {
    std::byte* result = bytesOf(buffers.results) + resultBytes;
    if (isGiven) std::memcpy(result, at, range.bytes);
    resultBytes += roundUp(range.bytes, api::libraryResultAlignment);
    at = result;
  }
  words[i] = toWire(at);
  return CUDA_SUCCESS;
}

// Replaces virtual handles that are stored in host bytes (a setting whose value is an object).
void LibraryCall::replaceHeld() {
  for (auto& note : entry->notes) {
    if (!note.holdsObject || !isHost(note.from) || static_cast<uint32_t>(words[note.condition]) != note.value) continue;
    uint64_t handle;
    std::memcpy(&handle, fromWire<const void*>(words[note.from]), sizeof handle);
    if (handle != 0) handle = realOf(handle, note.objectType);
    std::memcpy(fromWire<void*>(words[note.from]), &handle, sizeof handle);
  }
}

void LibraryCall::keepObject(uint64_t object) {
  on.handles.add(api::Kind::LIBRARY_OBJECT, object, made);
  std::lock_guard lock(mine.mutex);
  mine.objects[object] = {entry->arguments[api::madeArgument(*entry)].objectType, std::move(place), {}, 0};
}

// Keeps the latest setting of each key, in the order of the calls: setting a stream resets the workspace.
void LibraryCall::keepSetting() {
  auto& known = knownLibraryObject(on, buffers.block[0]);
  auto& settings = known.settings;
  for (auto& note : entry->notes)
    if (!note.holdsObject && note.member == api::Member::stream) known.stream = buffers.block[note.from];
  auto bytes = std::as_bytes(std::span(given.begin(), given.size()));
  LibrarySetting setting{entry->signature, hostMask, {bytes.begin(), bytes.end()}};
  std::erase_if(settings, [&](const LibrarySetting& earlier) {
    if (earlier.entry != setting.entry) return false;
    for (size_t i = 0; i < entry->arguments.size(); ++i)
      if ((entry->keys >> i & 1) != 0 && std::memcmp(&earlier.block[i * 8], &setting.block[i * 8], 8) != 0) return false;
    return true;
  });
  settings.push_back(std::move(setting));
}

kj::ArrayPtr<const kj::byte> LibraryCall::results() const {
  if (function == nullptr) return kj::arrayPtr(problem.data(), problem.size()).asBytes();
  return kj::arrayPtr(buffers.results.data(), buffers.results.size()).asBytes().slice(0, resultBytes);
}

}  // namespace vgpu::stub
