// Memory and events of another process, which has made them and waits until this one ends.
#pragma once

#include <array>
#include <memory>

#include "../processes.h"
#include "place.h"

namespace families {

// One piece of its memory, and an event recorded behind the last work on it.
struct Given {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t written;
};
constexpr size_t givenCount = 8;
constexpr int givenNumbers = 1000;
using AllGiven = std::array<Given, givenCount>;

inline uint32_t firstGiven(size_t index) { return static_cast<uint32_t>(index) * 1000000; }

// The other process.
inline int give(const Peer& parent) {
  AllGiven given;
  for (size_t index = 0; index < givenCount; ++index) {
    uint32_t* data = nullptr;
    cudaEvent_t written;
    Numbers numbers(givenNumbers);
    for (int i = 0; i < givenNumbers; ++i) numbers[i] = firstGiven(index) + static_cast<uint32_t>(i);
    CHECK(cudaMalloc(&data, givenNumbers * sizeof(uint32_t)));
    CHECK(cudaEventCreateWithFlags(&written, cudaEventInterprocess | cudaEventDisableTiming));
    CHECK(cudaMemcpy(data, numbers.data(), givenNumbers * sizeof(uint32_t), cudaMemcpyHostToDevice));
    CHECK(cudaEventRecord(written, nullptr));
    CHECK(cudaIpcGetMemHandle(&given[index].memory, data));
    CHECK(cudaIpcGetEventHandle(&given[index].written, written));
  }
  CHECK(cudaDeviceSynchronize());
  parent.send(given);
  parent.meet();  // the parent has closed all of them
  CHECK(cudaDeviceReset());
  return 0;
}

// The exporting process. One piece stays open: sessions that share memory are suspended together (docs/ipc.md), and a handle is valid on
// its node.
class Giver {
 public:
  Giver() : child("give"), given(child.receive<AllGiven>()) {
    CHECK(cudaIpcOpenMemHandle(&held, given[0].memory, cudaIpcMemLazyEnablePeerAccess));
  }
  // Whether it has ended successfully.
  bool end() const {
    CHECK(cudaIpcCloseMemHandle(held));
    child.meet();
    return child.ended();
  }

  // A piece that no other thread uses meanwhile, and how often it has been added to.
  struct Piece {
    std::mutex mutex;
    uint32_t added = 0;
  };
  Piece& piece(size_t index) { return pieces[index]; }
  const Given& handles(size_t index) const { return given[index]; }

 private:
  Child child;
  AllGiven given;
  void* held = nullptr;
  std::array<Piece, givenCount> pieces;
};
inline std::unique_ptr<Giver> giver;

// The additions of earlier users are there; a second opening gives the same memory, and lasts until it is closed too.
inline bool imports(const Place& place) {
  const size_t index = place.seed % givenCount, bytes = givenNumbers * sizeof(uint32_t);
  Giver::Piece& piece = giver->piece(index);
  std::lock_guard<std::mutex> alone(piece.mutex);
  const Given& given = giver->handles(index);
  void *memory = nullptr, *again = nullptr;
  cudaEvent_t written;
  CHECK(cudaIpcOpenMemHandle(&memory, given.memory, cudaIpcMemLazyEnablePeerAccess));
  CHECK(cudaIpcOpenMemHandle(&again, given.memory, cudaIpcMemLazyEnablePeerAccess));
  CHECK(cudaIpcOpenEventHandle(&written, given.written));
  bool ok = EXPECT(memory == again);
  CHECK(cudaIpcCloseMemHandle(memory));
  auto* data = static_cast<uint32_t*>(again);
  CHECK(cudaStreamWaitEvent(place.stream, written, 0));
  addTo<<<blocksFor(givenNumbers, 128), 128, 0, place.stream>>>(data, givenNumbers, 1);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(written, place.stream));
  Numbers found(givenNumbers), expected(givenNumbers);
  CHECK(cudaMemcpyAsync(found.data(), data, bytes, cudaMemcpyDeviceToHost, place.stream));
  place.wait();
  ++piece.added;
  for (int i = 0; i < givenNumbers; ++i) expected[i] = firstGiven(index) + static_cast<uint32_t>(i) + piece.added;
  ok &= same("another process's memory", found, expected);
  CHECK(cudaEventDestroy(written));
  CHECK(cudaIpcCloseMemHandle(again));
  return ok;
}

}  // namespace families
