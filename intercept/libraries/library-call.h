// A call of a library that has a face: from its arguments as the program gave them to a frame, and from the reply to the program.
//
// The pointer mode is known here, so what a pointer points to is read at the call if that is host memory, and written when the
// reply has come. A call that writes into host memory waits. Before it does, it waits for what its work would come behind: the library
// waits for what it computes, on the worker's thread, which must not wait for anything else that the GPU has to do.
//
// Any thread. Nothing of it survives the call.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <span>

#include "intercept/libraries/known-answers.h"
#include "intercept/libraries/places.h"
#include "intercept/libraries/seen-calls.h"
#include "intercept/session/entry.h"
#include "intercept/session/graph/captured-call.h"
#include "vgpu/api/library.h"

namespace vgpu::client {

class LibraryCall {
 public:
  LibraryCall(Thread& thread, const api::LibraryEntry& entry, uint64_t* words)
      : thread(thread), entry(entry), words(words) {}
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

  // CUDA's result of the way there and back; the library's own is status().
  CUresult run();
  uint64_t status() const { return answer; }

 private:
  // Each false if `answer` says why the call is none.
  bool resolveObjects();
  bool resolveStream(CUresult& error);
  bool layOut(CUresult& error);
  bool refuseSize(uint64_t bytes);
  bool replaceHeld(CUresult& error);

  bool canWait() const;
  CUresult makeObjects();

  CUresult send();
  CUresult capture(std::shared_ptr<CapturedCall>& made);
  bool answerFromMemory();
  CUresult create();
  CUresult destroy();
  void recall();
  uint64_t blockBytes() const { return count() * sizeof(uint64_t) + dataBytes; }
  void writeBlock(void* to) const;
  LibraryObject::Call made(uint64_t key) const;
  // What fill() puts into a frame besides its numbers.
  uint64_t frameWords() const { return dataWords(blockBytes()) + dataWords(std::strlen(entry.symbol) + 1); }
  template <typename Frame>
  void fill(Frame& frame);
  template <typename Results, typename Frame>
  CUresult await(Frame& frame);
  void takeResults(kj::ArrayPtr<const kj::byte> results);
  void succeed();
  void note(LibraryObject& object);
  uint64_t bytesIn(size_t argument) const { return api::pointedBytes(entry, argument, std::span(words, count()), scaleType); }

  size_t count() const { return entry.arguments.size(); }
  bool isHost(size_t argument) const { return (hostMask >> argument & 1) != 0; }
  bool isGiven(size_t argument) const { return api::HostRange::of(laidOut[argument]).offset != 0; }
  LibraryObject* firstObject() const { return count() == 0 ? nullptr : objects[0]; }

  static SeenCalls seen;
  static KnownAnswers& answers;
  static Places& places;

  Thread& thread;
  const api::LibraryEntry& entry;
  uint64_t* const words;  // the program's
  uint64_t answer = 0;
  unsigned device = 0;
  uint32_t touched = 0;  // a bit for each device of an object
  uint64_t stream = 0;   // resolved
  uint32_t hostMask = 0;
  bool writesHost = false, namesHeld = false;
  // Of what decides whether it succeeds, and of all of it: they differ by addresses among the bytes that are set.
  uint64_t digest = 0, exact = 0;
  uint64_t scaleType = 0;
  unsigned objectCount = 0;
  std::array<LibraryObject*, api::maxLibraryArguments> objects;
  std::array<uint64_t, api::maxLibraryArguments> laidOut;  // the words of the argument block
  std::array<uint64_t, 64> small;                          // the bytes behind the words, if they are few
  std::unique_ptr<std::byte[]> large;
  std::byte* data = nullptr;
  size_t dataBytes = 0;
};

}  // namespace vgpu::client
