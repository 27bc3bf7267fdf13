// A stream that is blocked until later work of another stream has run, with as much work behind it as CUDA accepts: the thread that fills
// it blocks in its call if the stream is full, all other threads continue.
#include <cstring>
#include <thread>

#include "driver-entry.h"
#include "program.h"

namespace {

// In program memory that kernels can access: ends the hold.
using Flag = volatile int;

__global__ void raise(Flag* flag) { *flag = 1; }
__global__ void awaitFlag(Flag* flag) {
  while (*flag == 0) {
  }
}
void CUDART_CB awaitFlagOnHost(void* flag) {
  while (*static_cast<Flag*>(flag) == 0) usleep(100);
}

// Runs for a while before it ends the hold, so that most of the held work is still pending at the pause.
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

// One thread posts as many launches as a stream accepts natively, and then ends the hold.
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

// More launches than a stream accepts; another thread ends the hold, and only then makes the objects that it needs.
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

// The legacy default stream has its own limit, and its work is ordered with that of blocking streams as usual.
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

// Pinned memory with a flag for each condition; all are raised at the end, so that nothing stays held.
struct Flags {
  static constexpr int count = 4;
  int* words;

  Flags() {
    CHECK(cudaMallocHost(&words, count * sizeof *words));
    std::memset(words, 0, count * sizeof *words);
  }
  ~Flags() {
    raiseAll();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFreeHost(words));
  }
  int* operator[](int i) const { return words + i; }
  void raiseOne(int i) const { *static_cast<Flag*>(words + i) = 1; }
  void raiseAll() const {
    for (int i = 0; i < count; ++i) raiseOne(i);
  }
  // Waits up to twenty seconds: longer than any kernel here takes on a slow machine, so that a failure does not hang.
  bool isRaised(int i) const { return happens([&] { return *static_cast<Flag*>(words + i) != 0; }); }

  template <typename Condition>
  static bool happens(Condition condition) {
    for (int tries = 0; tries < 200'000 && !condition(); ++tries) usleep(100);
    return condition();
  }
};

struct BlockingStream {
  cudaStream_t stream;
  BlockingStream() { CHECK(cudaStreamCreate(&stream)); }
  ~BlockingStream() { CHECK(cudaStreamDestroy(stream)); }
  operator cudaStream_t() const { return stream; }
};

// A call on its own thread, which may wait for a flag that the caller raises afterwards.
class Call {
 public:
  template <typename Function>
  explicit Call(Function function) : thread([this, function] { CHECK(function()), hasEnded = true; }) {
    usleep(50'000);  // for the call
  }
  ~Call() { thread.join(); }
  bool ends() const { return Flags::happens([&] { return hasEnded.load(); }); }

 private:
  std::atomic<bool> hasEnded{false};
  std::thread thread;  // last, because it sets the flag
};

// A stream whose work is complete reports it, and a wait for it returns, although the legacy default stream, behind which its next work
// would be, is held and another thread waits for the device.
bool isOverBesideDefaultStream() {
  BlockingStream blocking;
  Flags flags;
  raise<<<1, 1, 0, blocking>>>(flags[0]);
  bool ok = EXPECT(flags.isRaised(0));
  awaitFlag<<<1, 1>>>(flags[1]);
  CHECK(cudaGetLastError());
  Call device(cudaDeviceSynchronize);
  ok &= EXPECT(Flags::happens([&] { return cudaStreamQuery(blocking) == cudaSuccess; }));
  Call wait([&] { return cudaStreamSynchronize(blocking); });
  ok &= EXPECT(wait.ends());
  flags.raiseAll();
  return ok;
}

// The same for a stream that still has work when the wait begins.
bool endsBesideDefaultStream() {
  BlockingStream blocking;
  Flags flags;
  awaitFlag<<<1, 1, 0, blocking>>>(flags[0]);
  awaitFlag<<<1, 1>>>(flags[1]);
  CHECK(cudaGetLastError());
  Call wait([&] { return cudaStreamSynchronize(blocking); });
  flags.raiseOne(0);
  const bool ok = EXPECT(wait.ends());
  flags.raiseAll();
  return ok;
}

// Nor does the wait take longer if another thread gives the stream more work, which comes behind the legacy stream's, or also gives the
// legacy stream more.
bool endsThoughMoreIsGiven(bool isLegacyGivenMore) {
  BlockingStream blocking;
  Flags flags;
  awaitFlag<<<1, 1, 0, blocking>>>(flags[0]);
  awaitFlag<<<1, 1>>>(flags[1]);
  CHECK(cudaGetLastError());
  Call wait([&] { return cudaStreamSynchronize(blocking); });
  raise<<<1, 1, 0, blocking>>>(flags[2]);
  if (isLegacyGivenMore) awaitFlag<<<1, 1>>>(flags[3]);
  CHECK(cudaGetLastError());
  bool ok = EXPECT_ERROR(cudaStreamQuery(blocking), cudaErrorNotReady);
  flags.raiseOne(0);
  ok &= EXPECT(wait.ends());
  flags.raiseAll();
  return ok;
}

// Waits do not block other work: threads wait for the legacy default stream and for the device, whose work is held in one blocking stream,
// while another stream's work runs, which ends the hold.
template <typename Wait>
bool waitHoldsNothingUp(Wait wait) {
  BlockingStream held, other;
  Flags flags;
  raise<<<1, 1>>>(flags[0]);
  bool ok = EXPECT(flags.isRaised(0));
  awaitFlag<<<1, 1, 0, held>>>(flags[1]);
  Call waiting(wait);
  raise<<<1, 1, 0, other>>>(flags[1]);
  CHECK(cudaGetLastError());
  ok &= EXPECT(waiting.ends());
  flags.raiseAll();
  return ok;
}

// Nor does the destruction of an object that the driver keeps until all work is done: the legacy default stream has work, and a blocking
// stream behind it waits for another stream's work. `hold` makes it wait.
template <typename Hold>
bool endOfObjectHoldsNothingUp(Hold hold) {
  BlockingStream held, other;
  DeviceArray<float> memory(256);
  Flags flags;
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {memory, cudaCreateChannelDesc<float>(), 256 * sizeof(float)};
  const cudaTextureDesc description{};
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  awaitFlag<<<1, 1>>>(flags[0]);
  hold(held, flags[1]);
  CHECK(cudaDestroyTextureObject(texture));
  flags.raiseOne(0);
  raise<<<1, 1, 0, other>>>(flags[1]);
  CHECK(cudaGetLastError());
  const bool ok = EXPECT(flags.isRaised(1));
  flags.raiseAll();
  return ok;
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
  ok &= endsBesideDefaultStream();
  ok &= endsThoughMoreIsGiven(false) & endsThoughMoreIsGiven(true);
  ok &= waitHoldsNothingUp([] { return cudaStreamSynchronize(nullptr); });
  ok &= waitHoldsNothingUp(cudaDeviceSynchronize);
  ok &= endOfObjectHoldsNothingUp([](cudaStream_t stream, int* flag) { awaitFlag<<<1, 1, 0, stream>>>(flag); });
  ok &= endOfObjectHoldsNothingUp([](cudaStream_t stream, int* flag) {
    CHECK(cudaLaunchHostFunc(stream, awaitFlagOnHost, flag));
  });
  ok &= endOfObjectHoldsNothingUp([](cudaStream_t stream, int* flag) {
    CALL(cuStreamWaitValue32, stream, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_EQ);
  });
  return verdict("held-streams", ok);
}
