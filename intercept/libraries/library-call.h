// A call to a library that has a face: turns the program's arguments into a frame, and the reply into the program's results.
//
// The client knows the pointer mode, so it reads host memory that a pointer names at the call, and writes it when the reply arrives. A call
// that writes host memory waits for the reply. Before it is sent it waits until the work ahead of it in its stream is done: the library
// waits for its results on the worker's thread, which must not wait for other GPU work.
//
// Any thread. The object lives for one call.
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

  // CUDA's result of sending the call and receiving the reply; the library's own is status().
  CUresult run();
  uint64_t status() const { return answer; }

 private:
  // Each returns false if the call is not to be sent; `answer` or the error says why.
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
  // The words that fill() needs in a frame for its data.
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
  uint32_t touched = 0;  // one bit for each device of an object that the call uses
  uint64_t stream = 0;   // resolved
  uint32_t hostMask = 0;
  bool writesHost = false, namesHeld = false;
  // `digest`: of everything that decides whether the call succeeds; `exact`: of the addresses among the set bytes too.
  uint64_t digest = 0, exact = 0;
  uint64_t scaleType = 0;
  unsigned objectCount = 0;
  std::array<LibraryObject*, api::maxLibraryArguments> objects;
  std::array<uint64_t, api::maxLibraryArguments> laidOut;  // the words of the argument block
  std::array<uint64_t, 64> small;                          // the bytes after the words, if they are few
  std::unique_ptr<std::byte[]> large;
  std::byte* data = nullptr;
  size_t dataBytes = 0;
};

}  // namespace vgpu::client
