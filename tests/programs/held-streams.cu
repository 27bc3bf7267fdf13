// A stream that is blocked until later work of another stream has run, with as much work behind it as CUDA takes: the thread that
// fills it waits in its call if the stream is full, all other threads continue.
#include <cstring>
#include <thread>

#include "program.h"

namespace {

// In memory of the program that kernels reach too: what ends the hold.
using Flag = volatile int;

__global__ void raise(Flag* flag) { *flag = 1; }
__global__ void awaitFlag(Flag* flag) {
  while (*flag == 0) {
  }
}
void CUDART_CB awaitFlagOnHost(void* flag) {
  while (*static_cast<Flag*>(flag) == 0) usleep(100);
}

// Does nothing useful for a while, so that a program that pauses behind the end of the hold has much of its work still
// to come.
__global__ void raiseLate(Flag* flag, unsigned spins, unsigned* sink) {
  unsigned value = *sink;
  for (unsigned i = 0; i < spins; ++i) value = value * 1664525 + 1013904223;
  *sink = value;
  *flag = 1;
}

struct Turns {
  unsigned ran, wrong;
};
__global__ void takeTurn(Turns* turns, unsigned turn) {
  if (turns->ran != turn) turns->wrong += 1;
  turns->ran += 1;
}

struct Held {
  cudaStream_t stream, other;
  Flag* flag;
  DeviceArray<Turns> turns{std::vector<Turns>{{0, 0}}};
  DeviceArray<unsigned> sink{std::vector<unsigned>{1}};

  Held() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    int* word;
    CHECK(cudaMallocHost(&word, sizeof *word));
    flag = word;
    *flag = 0;
  }
  ~Held() {
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaFreeHost(const_cast<int*>(flag)));
  }
  void byHostFunction() { CHECK(cudaLaunchHostFunc(stream, awaitFlagOnHost, const_cast<int*>(flag))); }
  void byKernel() { awaitFlag<<<1, 1, 0, stream>>>(flag); }
  void launch(unsigned turn) { takeTurn<<<1, 1, 0, stream>>>(turns, turn); }

  bool isRight(const char* what, unsigned launches) {
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamSynchronize(other));
    const Turns got = turns.download()[0];
    if (got.ran == launches && got.wrong == 0) return true;
    std::fprintf(stderr, "%s: %u of %u launches ran, %u out of turn\n", what, got.ran, launches, got.wrong);
    return false;
  }
};

// As many as a stream takes natively, and their end, by one thread.
template <typename Hold>
bool fillsOneStream(const char* what, Hold hold) {
  constexpr unsigned launches = 1000;
  Held held;
  hold(held);
  for (unsigned turn = 0; turn < launches; ++turn) held.launch(turn);
  raise<<<1, 1, 0, held.other>>>(held.flag);
  CHECK(cudaGetLastError());
  return held.isRight(what, launches);
}

// More than a stream takes; the end comes from another thread, which makes what it needs only then.
bool overfillsOneStream(bool pauses) {
  constexpr unsigned launches = 5000;
  Held held;
  std::atomic<unsigned> posted{0};
  held.byHostFunction();
  std::thread filler([&] {
    for (unsigned turn = 0; turn < launches; ++turn, ++posted) held.launch(turn);
    CHECK(cudaGetLastError());
  });
  while (posted < 1000) usleep(100);
  DeviceArray<int> made(16);
  cudaStream_t third;
  cudaEvent_t event;
  CHECK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  raiseLate<<<1, 1, 0, third>>>(held.flag, pauses ? 300000 : 1, held.sink);
  CHECK(cudaEventRecord(event, third));
  if (pauses) pausePoint();
  CHECK(cudaEventSynchronize(event));
  filler.join();
  const bool ok = held.isRight("5,000 launches", launches);
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(third));
  return ok;
}

// The legacy default stream's room is its own, and work of it is ordered with that of blocking streams as ever.
bool fillsDefaultStream() {
  constexpr unsigned launches = 3000;
  DeviceArray<Turns> turns(std::vector<Turns>{{0, 0}});
  cudaStream_t blocking;
  CHECK(cudaStreamCreate(&blocking));
  for (unsigned turn = 0; turn < launches; ++turn) takeTurn<<<1, 1, 0, turn % 3 == 2 ? blocking : nullptr>>>(turns, turn);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamDestroy(blocking));
  const Turns got = turns.download()[0];
  return EXPECT(got.ran == launches) & EXPECT(got.wrong == 0);
}

// A stream whose work is over says so while the legacy default stream, behind which its next work would be, is held and another
// thread waits for the device.
bool isOverBesideDefaultStream() {
  Held held;
  int *done, *later;
  cudaStream_t blocking;
  CHECK(cudaMallocHost(&done, 2 * sizeof *done));
  later = done + 1;
  *done = *later = 0;
  CHECK(cudaStreamCreate(&blocking));
  raise<<<1, 1, 0, blocking>>>(done);
  while (*static_cast<Flag*>(done) == 0) usleep(100);
  awaitFlag<<<1, 1>>>(later);
  CHECK(cudaGetLastError());
  std::thread waiter([] { CHECK(cudaDeviceSynchronize()); });
  usleep(50000);  // for its call
  cudaError_t state = cudaErrorNotReady;
  for (int i = 0; i < 2000 && state == cudaErrorNotReady; ++i, usleep(1000)) state = cudaStreamQuery(blocking);
  *static_cast<Flag*>(later) = 1;
  waiter.join();
  CHECK(cudaStreamDestroy(blocking));
  CHECK(cudaFreeHost(done));
  return EXPECT(state == cudaSuccess);
}

}  // namespace

int main() {
  loadKernel(raise);
  loadKernel(awaitFlag);
  loadKernel(raiseLate);
  loadKernel(takeTurn);
  bool ok = fillsOneStream("behind a host function", [](Held& held) { held.byHostFunction(); });
  ok &= fillsOneStream("behind a kernel", [](Held& held) { held.byKernel(); });
  ok &= overfillsOneStream(false);
  ok &= overfillsOneStream(true);
  ok &= fillsDefaultStream();
  ok &= isOverBesideDefaultStream();
  return verdict("held-streams", ok);
}
