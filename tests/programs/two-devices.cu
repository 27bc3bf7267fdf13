// A query about a stream, an event or memory refers to its own device, whichever device is current for the calling thread. Passes at once
// if there is only one device.
#include <thread>

#include "await-flag.h"
#include "program.h"

__global__ void store(int* into, int value) { *into = value; }

namespace {

// A stream of a device that waits for release(), so that calls in between refer to running work.
class HeldStream {
 public:
  explicit HeldStream(int device) {
    CHECK(cudaSetDevice(device));
    loadKernel(store);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaMalloc(&value, sizeof(int)));
    CHECK(cudaMallocHost(&seen, sizeof(int)));
  }
  ~HeldStream() {
    CHECK(cudaFreeHost(seen));
    CHECK(cudaFree(value));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamDestroy(stream));
  }
  // Holds the stream, with an event behind later work. `seen` becomes `number` when all of it has run.
  void hold(int number) {
    *seen = 0;
    released = false;
    CHECK(cudaLaunchHostFunc(stream, awaitFlag, &released));
    store<<<1, 1, 0, stream>>>(value, number);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(seen, value, sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(event, stream));
  }
  void release() { released = true; }

  cudaStream_t stream;
  cudaEvent_t event;
  int *value, *seen;

 private:
  std::atomic<bool> released{false};
};

// Holds the stream, lets another thread release it a little later, and checks that `wait` returns only afterwards.
template <typename Wait>
bool waits(const char* what, HeldStream& held, int current, int number, Wait wait) {
  CHECK(cudaSetDevice(current));
  held.hold(number);
  std::thread releaser([&] {
    usleep(20000);
    held.release();
  });
  const cudaError_t error = wait();
  const bool waited = *static_cast<volatile int*>(held.seen) == number;
  releaser.join();
  CHECK(cudaEventSynchronize(held.event));
  if (!waited) std::fprintf(stderr, "%s returned before the work had ended\n", what);
  return EXPECT_ERROR(error, cudaSuccess) & waited;
}

bool waitsAreOfTheStreamsDevice(HeldStream& held, int current, int own) {
  CHECK(cudaSetDevice(current));
  CHECK(cudaDeviceSynchronize());
  held.hold(1);
  bool ok = EXPECT_ERROR(cudaStreamQuery(held.stream), cudaErrorNotReady) &
            EXPECT_ERROR(cudaEventQuery(held.event), cudaErrorNotReady);
  CHECK(cudaDeviceSynchronize());  // the current device is idle, and the call does not wait for the other one
  ok &= EXPECT(*held.seen == 0);
  held.release();
  CHECK(cudaEventSynchronize(held.event));

  ok &= waits("cudaStreamSynchronize", held, current, 2, [&] { return cudaStreamSynchronize(held.stream); });
  ok &= waits("cudaEventSynchronize", held, current, 3, [&] { return cudaEventSynchronize(held.event); });
  ok &= waits("cudaDeviceSynchronize", held, current, 4, [&] {
    CHECK(cudaSetDevice(own));  // the work was issued while the other device was current
    return cudaDeviceSynchronize();
  });
  int* unused;
  CHECK(cudaSetDevice(own));
  CHECK(cudaMalloc(&unused, sizeof(int)));
  ok &= waits("cudaFree", held, current, 5, [&] { return cudaFree(unused); });
  int copied = 0;
  ok &= waits("cudaMemcpyAsync to pageable memory", held, current, 6, [&] {
    return cudaMemcpyAsync(&copied, held.value, sizeof copied, cudaMemcpyDeviceToHost, held.stream);
  });
  return ok & EXPECT(copied == 6);
}

// An event can only be recorded in streams of its own device.
bool eventsAreOfOneDevice(HeldStream& here, HeldStream& there, int current) {
  CHECK(cudaSetDevice(current));
  const bool ok = EXPECT_ERROR(cudaEventRecord(here.event, there.stream), cudaErrorInvalidResourceHandle) &
                  EXPECT_ERROR(cudaEventRecord(there.event, here.stream), cudaErrorInvalidResourceHandle) &
                  EXPECT_ERROR(cudaEventRecord(there.event), cudaErrorInvalidResourceHandle) &
                  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle) &
                  EXPECT_ERROR(cudaEventRecord(here.event), cudaSuccess) &
                  EXPECT_ERROR(cudaEventRecord(there.event, there.stream), cudaSuccess);
  // Waiting for another device's event is allowed.
  CHECK(cudaStreamWaitEvent(here.stream, there.event, 0));
  CHECK(cudaStreamSynchronize(here.stream));
  return ok;
}

// A stream-ordered allocation comes from the pool of the stream's device.
bool poolsAreOfTheStreamsDevice(HeldStream& held, int current, int own) {
  CHECK(cudaSetDevice(current));
  int* memory;
  CHECK(cudaMallocAsync(&memory, sizeof(int), held.stream));
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, memory));
  CHECK(cudaFreeAsync(memory, held.stream));
  CHECK(cudaStreamSynchronize(held.stream));
  return EXPECT(attributes.device == own);
}

// A fault ends the contexts of all devices of the process: a wait for any device's work returns it.
bool faultIsToldOfEveryDevice(HeldStream& held, HeldStream& other, int current) {
  CHECK(cudaSetDevice(current));
  store<<<1, 1, 0, held.stream>>>(reinterpret_cast<int*>(uintptr_t(0x7000000000000)), 1);
  return EXPECT_ERROR(cudaStreamSynchronize(held.stream), cudaErrorIllegalAddress) &
         EXPECT_ERROR(cudaStreamQuery(held.stream), cudaErrorIllegalAddress) &
         EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress) &
         EXPECT_ERROR(cudaStreamSynchronize(other.stream), cudaErrorIllegalAddress) &
         EXPECT_ERROR(cudaStreamQuery(other.stream), cudaErrorIllegalAddress);
}

}  // namespace

int main() {
  int devices;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return notHere;
  static auto& first = *new HeldStream(0);  // both end with a fault, so they are never destroyed
  static auto& second = *new HeldStream(1);
  bool ok = waitsAreOfTheStreamsDevice(second, 0, 1) & waitsAreOfTheStreamsDevice(first, 1, 0);
  ok &= eventsAreOfOneDevice(first, second, 0) & eventsAreOfOneDevice(second, first, 1);
  ok &= poolsAreOfTheStreamsDevice(second, 0, 1) & poolsAreOfTheStreamsDevice(first, 1, 0);
  pausePoint();
  ok &= waitsAreOfTheStreamsDevice(second, 0, 1) & eventsAreOfOneDevice(first, second, 0);
  ok &= faultIsToldOfEveryDevice(second, first, 0);
  return verdict("two-devices", ok);
}
