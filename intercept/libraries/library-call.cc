#include "intercept/libraries/library-call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "intercept/libraries/objects.h"
#include "intercept/session/digest.h"
#include "intercept/session/ring-order.h"
#include "vgpu/api/captured-settings.h"
#include "vgpu/api/library-variables.h"
#include "vgpu/wire/arena.h"
#include "vgpu/wire/segment.h"

namespace vgpu::client {

using api::Argument, api::Does, api::HostRange, api::libraryStatus;

namespace {

// Limits of the bytes in host memory that a call's frame carries besides the words, and that its reply carries.
constexpr uint64_t maxInputBytes = 48 * KiB, maxResultBytes = 256 * KiB;
// An output of at most this many bytes is sent with its present content, so that bytes that the library does not write stay unchanged.
constexpr uint64_t keptOutputBytes = 64;

// Mixed into the digest of captured calls, which are remembered separately.
constexpr uint64_t capturedCalls = 0xca11;

// Only the alignment of an address enters the digest, as far as a kernel may depend on it.
constexpr uint64_t alignmentOf(uint64_t address) { return address == 0 ? 0 : 256 | (address & 255); }

}  // namespace

constinit SeenCalls LibraryCall::seen;
// Never destroyed: static destructors may still call this.
KnownAnswers& LibraryCall::answers = *new KnownAnswers;
Places& LibraryCall::places = *new Places;

CUresult LibraryCall::run() {
  if (!resolveObjects()) return CUDA_SUCCESS;
  if (entry.does == Does::recall) return recall(), CUDA_SUCCESS;
  if (entry.does == Does::destroy) return destroy();
  CUresult error = CUDA_SUCCESS;
  if (!resolveStream(error) || !layOut(error)) return error;
  if (entry.does == Does::create) return create();
  if (entry.askedOnce && answerFromMemory()) return CUDA_SUCCESS;
  if (canWait()) return succeed(), CUDA_SUCCESS;
  if ((error = makeObjects()) != CUDA_SUCCESS) return error;
  return acrossRings(thread, device, touched, [&] { return send(); });
}

bool LibraryCall::resolveObjects() {
  device = thread.device();
  for (size_t i = 0; i < count(); ++i) {
    auto& argument = entry.arguments[i];
    laidOut[i] = words[i];
    objects[i] = nullptr;
    // The library decides whether a query needs a handle (cublasGetVersion does not).
    if (argument.what != Argument::object || (words[i] == 0 && (i != 0 || entry.does == Does::query))) continue;
    auto& type = api::objectTypes[argument.objectType];
    uint64_t handle = libraryHandleOf(type, words[i]);
    objects[i] = handle == 0 ? nullptr : findLibraryObject(thread, handle);
    if (objects[i] == nullptr || !api::takes(entry, argument.objectType, objects[i]->type)) {
      const bool endsNothing = entry.does == Does::destroy && type.inPlaceBytes != 0 && words[i] == 0;  // as free(nullptr)
      answer = static_cast<uint64_t>(endsNothing ? 0 : type.inPlaceBytes == 0 ? libraryStatus.absent : libraryStatus.invalid);
      return false;
    }
    ++objectCount;
    laidOut[i] = objects[i]->remote();
    if (i == 0) device = handleDevice(handle);
    touched |= 1u << handleDevice(handle);
  }
  return true;
}

bool LibraryCall::resolveStream(CUresult& error) {
  for (size_t i = 0; i < count(); ++i) {
    if (entry.arguments[i].what != Argument::stream) continue;
    if ((error = thread.resolve(api::Kind::STREAM, true, laidOut[i])) != CUDA_SUCCESS) return false;
    if (laidOut[i] != 0) touched |= 1u << thread.deviceOf(laidOut[i]);
    if (i == entry.streamFrom) stream = laidOut[i];
  }
  if (entry.streamFrom == api::noArgument && entry.does == Does::work && firstObject() != nullptr) {
    stream = firstObject()->members[static_cast<size_t>(api::Member::stream)].load(std::memory_order_relaxed);
    if ((error = thread.resolve(api::Kind::STREAM, true, stream)) != CUDA_SUCCESS) return false;
  }
  if (entry.does != Does::work || thread.deviceOf(stream) == device) return true;
  answer = static_cast<uint64_t>(libraryStatus.invalid);  // the stream, or the default stream, belongs to another device than the handle
  return false;
}

// Fills the argument block's words and the bytes after them, and computes the call's digest.
bool LibraryCall::layOut(CUresult& error) {
  LibraryObject* modeObject = entry.modeObject == api::noArgument ? nullptr : objects[entry.modeObject];
  auto memberOf = [](LibraryObject* object, api::Member member) {
    return object == nullptr ? 0 : object->members[static_cast<size_t>(member)].load(std::memory_order_relaxed);
  };
  const uint32_t mode = 1u << (memberOf(modeObject, api::Member::pointerMode) & 7);
  scaleType = memberOf(modeObject, api::Member::scaleType);
  digest = mixed(mixed(entry.signature, device), thread.session.functionChanges[device].load(std::memory_order_relaxed));

  uint64_t end = count() * sizeof(uint64_t), results = 0;
  for (size_t i = 0; i < count(); ++i) {
    auto& argument = entry.arguments[i];
    if (!isRead(argument.what) && !isWritten(argument.what)) continue;
    if ((argument.unusedModes & mode) != 0) laidOut[i] = 0;
    if ((argument.hostModes & mode) == 0 || laidOut[i] == 0) continue;
    uint64_t bytes = bytesIn(i);
    if (bytes > maxResultBytes) return refuseSize(bytes);
    hostMask |= 1u << i;
    HostRange range{0, static_cast<uint32_t>(bytes)};
    if (isRead(argument.what) || bytes <= keptOutputBytes) {
      range.offset = static_cast<uint32_t>(roundUp(end, api::libraryResultAlignment));
      end = range.offset + bytes;
    }
    if (isWritten(argument.what)) results += roundUp(bytes, api::libraryResultAlignment);
    writesHost |= isWritten(argument.what);
    laidOut[i] = range.word();
  }
  uint64_t addresses = 0;
  auto deciding = [&](uint64_t word) {
    if (!inDeviceArenas(word) && !inMappedArena(word)) return word;
    addresses = mixed(addresses, word);
    return alignmentOf(word);
  };
  dataBytes = end - count() * sizeof(uint64_t);
  if (dataBytes > maxInputBytes || results > maxResultBytes) return refuseSize(std::max(dataBytes, results));
  if (dataBytes > sizeof small) large = std::make_unique<std::byte[]>(dataBytes);
  data = large ? large.get() : std::as_writable_bytes(std::span(small)).data();

  for (size_t i = 0; i < count(); ++i) {
    auto& argument = entry.arguments[i];
    uint64_t word = laidOut[i];
    if (isHost(i)) {
      auto range = HostRange::of(word);
      std::byte* to = data + (range.offset - count() * sizeof(uint64_t));
      if (range.offset != 0) std::memcpy(to, fromWire<const void*>(words[i]), range.bytes);
      bool decides = isRead(argument.what) && (argument.count != api::noArgument || entry.does == Does::set);
      digest = decides ? mixedBytes(mixed(digest, range.bytes), {to, range.bytes}, deciding) : mixed(digest, 1);
    } else if (argument.what == Argument::object) {
      bool isChanged = entry.does == Does::set && i == 0;  // whether a setting is valid does not depend on earlier settings
      digest = mixed(digest, objects[i] == nullptr ? 0 : isChanged ? objects[i]->type : objects[i]->content());
    } else if (argument.what == Argument::value) {
      digest = mixed(digest, word);
    } else if (argument.what == Argument::stream) {
      digest = mixed(digest, word != 0);
    } else if (argument.what != Argument::made && argument.what != Argument::place) {
      digest = mixed(digest, alignmentOf(word));
    }
  }
  exact = digest + addresses;
  return replaceHeld(error);
}

bool LibraryCall::refuseSize(uint64_t bytes) {
  reportFailure(fmt::format("{}: its arrays in host memory have {} bytes; one call can pass at most {} bytes to the GPU's host and {} "
                            "bytes back. Split it into several calls",
                            entry.symbol, bytes, maxInputBytes, maxResultBytes)
                    .c_str());
  answer = static_cast<uint64_t>(libraryStatus.unsupported);
  return false;
}

// Replaces program handles inside the bytes by the worker's.
bool LibraryCall::replaceHeld(CUresult& error) {
  for (auto& note : entry.notes) {
    if (!note.holdsObject || !isHost(note.from) || static_cast<uint32_t>(words[note.condition]) != note.value) continue;
    auto range = HostRange::of(laidOut[note.from]);
    uint64_t handle = 0;
    if (range.bytes != sizeof handle) continue;
    std::byte* held = data + (range.offset - count() * sizeof(uint64_t));
    std::memcpy(&handle, held, sizeof handle);
    if (handle == 0) continue;
    handle = libraryHandleOf(api::objectTypes[note.objectType], handle);
    LibraryObject* object = findLibraryObject(thread, handle);
    if (object == nullptr || !api::takes(entry, note.objectType, object->type)) {
      answer = static_cast<uint64_t>(libraryStatus.invalid);
      return false;
    }
    touched |= 1u << handleDevice(handle);
    if ((error = thread.session.descriptions.make(thread, *object)) != CUDA_SUCCESS) return false;
    handle = object->remote();
    std::memcpy(held, &handle, sizeof handle);
    namesHeld = true;
  }
  return true;
}

// Whether a setting of a description that nothing has used yet can be deferred to its first use: it can if an identical call has succeeded
// before and the call names no other object.
bool LibraryCall::canWait() const {
  const bool isOfPending = entry.does == Does::set && firstObject() != nullptr && firstObject()->isPending();
  return isOfPending && !writesHost && !namesHeld && objectCount == 1 && seen.has(digest);
}

CUresult LibraryCall::makeObjects() {
  for (size_t i = 0; i < count(); ++i) {
    if (objects[i] == nullptr) continue;
    if (CUresult error = thread.session.descriptions.make(thread, *objects[i])) return error;
    laidOut[i] = objects[i]->remote();
  }
  return CUDA_SUCCESS;
}

template <typename Frame>
void LibraryCall::fill(Frame& frame) {
  frame->setEntry(entry.signature);
  frame->setHostMask(hostMask);
  frame->setSymbol(entry.symbol);
  writeBlock(frame->initArguments(blockBytes()).begin());
}

// Writes the argument block: the words, and the bytes after them.
void LibraryCall::writeBlock(void* to) const {
  const uint64_t wordBytes = count() * sizeof(uint64_t);
  std::memcpy(to, laidOut.data(), wordBytes);
  if (dataBytes != 0) std::memcpy(static_cast<std::byte*>(to) + wordBytes, data, dataBytes);
}

template <typename Results, typename Frame>
CUresult LibraryCall::await(Frame& frame) {
  CUresult error = frame.call();
  if (error != CUDA_SUCCESS && !frame.hasResults()) return error;
  auto results = frame.template results<Results>();
  answer = results.getStatus();
  if (answer == api::libraryAbsent) {
    auto text = results.getResults();
    reportFailure(fmt::format("{}: there is no {} on the GPU's host ({}); its calls return CUBLAS_STATUS_NOT_INITIALIZED",
                              entry.symbol, api::libraries[entry.library].soname,
                              std::string_view(text.asChars().begin(), text.size())).c_str());
    answer = entry.returnsStatus ? static_cast<uint64_t>(libraryStatus.absent) : 0;
    return CUDA_SUCCESS;
  }
  takeResults(results.getResults());
  if (entry.askedOnce && answer == 0) answers.add(digest, results.getResults());
  return CUDA_SUCCESS;
}

bool LibraryCall::answerFromMemory() {
  thread_local std::vector<unsigned char> results;
  if (!answers.find(digest, results)) return false;
  takeResults(kj::arrayPtr(results.data(), results.size()));
  return true;
}

void LibraryCall::takeResults(kj::ArrayPtr<const kj::byte> results) {
  size_t at = 0;
  for (size_t i = 0; i < count(); ++i) {
    if (!isHost(i) || !isWritten(entry.arguments[i].what)) continue;
    size_t bytes = HostRange::of(laidOut[i]).bytes;
    if (at + bytes > results.size()) return;
    if (isGiven(i) || answer == 0) std::memcpy(fromWire<void*>(words[i]), results.begin() + at, bytes);
    at += roundUp(bytes, api::libraryResultAlignment);
  }
}

// Turns the call into a captured call for a graph node, if its stream is capturing. Not for a call that writes host memory: it waits for
// its stream, which a capture forbids.
CUresult LibraryCall::capture(std::shared_ptr<CapturedCall>& made) {
  std::vector<uint64_t> used, settings;
  for (size_t i = 0; i < count(); ++i) {
    if (objects[i] == nullptr || std::ranges::find(used, laidOut[i]) != used.end()) continue;
    used.push_back(laidOut[i]);
    for (auto& call : objects[i]->calls())
      api::addCapturedSetting(settings, {call.row->signature, call.hostMask, call.block.data()});
  }
  const uint64_t words = frameWords() + used.size() + settings.size();
  if (words > mostDataWords) return CUDA_ERROR_OUT_OF_MEMORY;
  NewHandle handle(thread, api::Kind::CAPTURED_CALL);
  const bool isKnown = seen.has(mixed(digest, capturedCalls));
  Call<api::Cuda::LibraryCaptureParams> frame(thread.on(device),
                                              isKnown ? api::Method::libraryCaptureAgain : api::Method::libraryCapture, words);
  frame->setCall(handle.get());
  frame->setObjects(kj::arrayPtr(used.data(), used.size()));
  frame->setStream(stream);
  fill(frame);
  frame->setSettings(kj::arrayPtr(settings.data(), settings.size()).asBytes());
  if (isKnown) {
    if (CUresult error = frame.post()) return error;
  } else {
    frame.recordLater();
    if (CUresult error = await<api::Cuda::LibraryCaptureResults>(frame)) return error;
    if (answer != 0) return CUDA_SUCCESS;
    frame.record();
    seen.add(mixed(digest, capturedCalls));
  }
  made = std::make_shared<CapturedCall>(thread.session, handle.keep());
  return CUDA_SUCCESS;
}

CUresult LibraryCall::send() {
  if (entry.does == Does::work && thread.session.captures.isActive()) [[unlikely]] {
    Captures::Info info;
    if (CUresult error = thread.session.captures.look(thread, stream, info)) return error;
    std::shared_ptr<CapturedCall> made;
    if (info.status == CU_STREAM_CAPTURE_STATUS_ACTIVE && !writesHost) {
      if (CUresult error = capture(made)) return error;
      if (made == nullptr) return CUDA_SUCCESS;  // the library has refused the call
    }
    auto describe = [&](NodeWork& work) -> CUresult {
      if (made == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      work = LibraryWork{made};
      return CUDA_SUCCESS;
    };
    if (auto captured = thread.session.captures.add(thread, stream, describe)) return *captured;
  }
  const uint64_t words = frameWords();
  const Target target = thread.on(device);
  const bool isKnown = entry.does != Does::query && !writesHost && seen.has(digest);
  CUresult error = CUDA_SUCCESS;
  if (entry.does == Does::work && isKnown) {
    Call<api::Cuda::LibraryPostParams> frame(target, api::Method::libraryPost, words);
    fill(frame);
    frame.setStream(stream);
    error = frame.post();
  } else if (entry.does == Does::work) {
    if (writesHost)
      if (CUresult failed = awaitTurn(thread, stream)) return failed;
    Call<api::Cuda::LibraryCallParams> frame(target, api::Method::libraryCall, words);
    fill(frame);
    frame.setStream(stream);
    error = await<api::Cuda::LibraryCallResults>(frame);
  } else if (isKnown) {
    Call<api::Cuda::LibrarySetParams> frame(target, api::Method::librarySet, words);
    fill(frame);
    error = frame.post();
  } else {
    Call<api::Cuda::LibraryAskParams> frame(target, api::Method::libraryAsk, words);
    fill(frame);
    error = await<api::Cuda::LibraryAskResults>(frame);
  }
  if (error == CUDA_SUCCESS && answer == 0) succeed();
  return error;
}

void LibraryCall::succeed() {
  if (entry.does != Does::query && !writesHost) seen.add(digest);
  if (entry.does != Does::set) return;
  LibraryObject& object = *firstObject();
  note(object);
  uint64_t key = entry.signature;
  for (size_t i = 0; i < count(); ++i)
    if ((entry.keys >> i & 1) != 0) key = mixed(key, words[i]);
  object.set(made(key));
}

LibraryObject::Call LibraryCall::made(uint64_t key) const {
  LibraryObject::Call call{key, {digest, exact}, &entry, hostMask, ArgumentBlock(blockBytes())};
  writeBlock(call.block.bytes().data());
  return call;
}

// Stores the settings that the client remembers of the object. A setting that is read from host memory is a number of at most eight bytes.
void LibraryCall::note(LibraryObject& object) {
  for (auto& note : entry.notes) {
    if (note.holdsObject) continue;
    if (note.condition != api::noArgument && static_cast<uint32_t>(words[note.condition]) != note.value) continue;
    uint64_t value = words[note.from];
    if (isHost(note.from)) {
      value = 0;
      std::memcpy(&value, fromWire<const void*>(words[note.from]),
                  std::min<size_t>(sizeof value, HostRange::of(laidOut[note.from]).bytes));
    }
    object.members[static_cast<size_t>(note.member)].store(value, std::memory_order_relaxed);
  }
}

void LibraryCall::recall() {
  uint64_t value = firstObject()->members[entry.recalled].load(std::memory_order_relaxed);
  auto& argument = entry.arguments[1];
  if (words[1] == 0) {
    answer = static_cast<uint64_t>(libraryStatus.invalid);
  } else {
    std::memcpy(fromWire<void*>(words[1]), &value, argument.bytes);
  }
}

CUresult LibraryCall::create() {
  const size_t at = api::madeArgument(entry);
  auto& argument = entry.arguments[at];
  if (words[at] == 0) return answer = static_cast<uint64_t>(libraryStatus.invalid), CUDA_SUCCESS;
  auto& type = api::objectTypes[argument.objectType];
  void* place = nullptr;
  if (argument.what == Argument::place) {
    place = fromWire<void*>(words[at]);
    // The program reuses the memory: the object that was made there has ended, whatever the program has written there since.
    uint64_t before = places.madeIn(place);
    LibraryObject* old = findLibraryObject(thread, before);
    if (old != nullptr && old->place == place) endLibraryObject(thread, before);
  } else if (type.inPlaceBytes != 0 && (place = places.take()) == nullptr) {
    return answer = static_cast<uint64_t>(libraryStatus.memory), CUDA_SUCCESS;
  }
  auto end = [](void* ended) { places.giveBack(ended); };
  LibraryObject::Digests digests{digest, exact};
  auto object = std::make_unique<LibraryObject>(argument.objectType, digests, place, argument.what == Argument::made ? +end : nullptr);

  NewHandle handle(thread, api::Kind::LIBRARY_OBJECT);
  laidOut[at] = 0;
  // Only its arguments decide whether a description can be made, so one whose call is known is made later.
  if (type.inPlaceBytes != 0 && seen.has(digest)) {
    object->later = {made(0), handleDevice(handle.get()), thread.owner()};
  } else {
    const std::string variables = api::libraryVariables();
    thread.session.descriptions.note(variables);
    Call<api::Cuda::LibraryCreateParams> frame(thread, api::Method::libraryCreate, frameWords() + dataWords(variables.size()));
    frame->setObject(handle.get());
    fill(frame);
    frame->setVariables(kj::arrayPtr(variables.data(), variables.size()).asBytes());
    // Recorded only if the library has made the object.
    frame.recordLater();
    if (CUresult error = await<api::Cuda::LibraryCreateResults>(frame)) return error;
    if (answer != 0) return CUDA_SUCCESS;
    frame.record();
    seen.add(digest);
    object->isThere(handle.get());
  }
  note(*object);
  thread.session.handles.find<api::Kind::LIBRARY_OBJECT>(handle.get())->object = std::move(object);
  giveLibraryHandle(type, words[at], argument.what == Argument::place ? places.note(place, handle.keep()) : handle.keep(), place);
  return CUDA_SUCCESS;
}

CUresult LibraryCall::destroy() {
  return endLibraryObject(thread, libraryHandleOf(api::objectTypes[entry.arguments[0].objectType], words[0]), &entry);
}

}  // namespace vgpu::client

namespace {

using namespace vgpu;
using namespace vgpu::client;

// A library's first call may be the program's first: as the library would, it makes the device's primary context current.
CUresult takeContext() {
  CUcontext context = nullptr;
  if (Session::find() != nullptr && cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) return CUDA_SUCCESS;
  CUdevice device = 0;
  if (CUresult error = cuInit(0)) return error;
  if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) return CUDA_SUCCESS;
  if (CUresult error = cuDeviceGet(&device, 0)) return error;
  if (CUresult error = cuDevicePrimaryCtxRetain(&context, device)) return error;
  return cuCtxSetCurrent(context);
}

int statusOf(CUresult error) {
  switch (error) {
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NOT_INITIALIZED: return api::libraryStatus.absent;
    case CUDA_ERROR_OUT_OF_MEMORY: return api::libraryStatus.memory;
    case CUDA_ERROR_UNKNOWN: return api::libraryStatus.internal;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE: return api::libraryStatus.invalid;
    default: return api::libraryStatus.failed;
  }
}

}  // namespace

// Called by the faces. `place`: the entry's index in api::libraryEntries; `words`: its arguments.
extern "C" VGPU_EXPORT uint64_t cuVgpuCallLibrary(unsigned place, uint64_t* words) {
  const api::LibraryEntry& entry = api::libraryEntries[place];
  uint64_t status = 0;
  auto run = [&](Thread& thread) -> CUresult {
    LibraryCall call(thread, entry, words);
    CUresult error = call.run();
    status = call.status();
    return error;
  };
  Session* session = Session::find();
  bool hasContext = session != nullptr && !Thread::current(*session).contextStack.empty();
  CUresult error = hasContext ? CUDA_SUCCESS : takeContext();
  if (error == CUDA_SUCCESS) error = enter(run);
  if (error != CUDA_SUCCESS) return entry.returnsStatus ? static_cast<uint64_t>(statusOf(error)) : 0;
  return status;
}
