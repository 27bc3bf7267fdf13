// Two devices that work at the same time: each with its own thread, one waiting for the other's events, copies between them, and a wait on
// one while the other is busy. Passes at once if there is only one device.
#include <atomic>
#include <thread>
#include <vector>

#include "await-flag.h"
#include "program.h"

__global__ void step(unsigned* values, unsigned count, unsigned by) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3 + by;
}
__global__ void store(unsigned* into, unsigned value) { *into = value; }

namespace {

constexpr unsigned count = 256;

// Memory and a stream of a device, which its functions make current.
struct Gpu {
  explicit Gpu(int device) : device(device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaMalloc(&values, count * sizeof(unsigned)));
    CHECK(cudaMemset(values, 0, count * sizeof(unsigned)));
    CHECK(cudaDeviceSynchronize());
  }
  void run(unsigned by) {
    CHECK(cudaSetDevice(device));
    step<<<1, count, 0, stream>>>(values, count, by);
    CHECK(cudaGetLastError());
  }
  void record() {
    CHECK(cudaSetDevice(device));
    CHECK(cudaEventRecord(event, stream));
  }
  std::vector<unsigned> read() {
    CHECK(cudaSetDevice(device));
    std::vector<unsigned> host(count);
    CHECK(cudaMemcpyAsync(host.data(), values, count * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    return host;
  }

  const int device;
  cudaStream_t stream;
  cudaEvent_t event;
  unsigned* values;
};

bool allAre(const std::vector<unsigned>& values, unsigned wanted) {
  for (unsigned value : values)
    if (value != wanted) return std::fprintf(stderr, "%u instead of %u\n", value, wanted), false;
  return true;
}

// Each thread uses its own GPU; now and then it waits, copies, and makes and destroys objects.
bool threadsWorkOnTheirOwn(Gpu& first, Gpu& second) {
  auto work = [](Gpu& gpu, bool& ok) {
    unsigned expected = gpu.read()[0];
    for (unsigned i = 0; i < 400; ++i) {
      gpu.run(i + static_cast<unsigned>(gpu.device));
      expected = expected * 3 + i + static_cast<unsigned>(gpu.device);
      if (i % 50 != 49) continue;
      ok &= allAre(gpu.read(), expected);
      cudaEvent_t timed;
      unsigned *more, *pinned;
      CHECK(cudaEventCreate(&timed));
      CHECK(cudaMalloc(&more, 4096));
      CHECK(cudaMallocHost(&pinned, 4096));
      CHECK(cudaMemcpyAsync(pinned, gpu.values, 4 * count, cudaMemcpyDeviceToHost, gpu.stream));
      CHECK(cudaEventRecord(timed, gpu.stream));
      CHECK(cudaEventSynchronize(timed));
      ok &= pinned[count - 1] == expected;
      CHECK(cudaFreeHost(pinned));
      CHECK(cudaFree(more));
      CHECK(cudaEventDestroy(timed));
    }
  };
  bool firstOk = true, secondOk = true;
  std::thread other([&] { work(second, secondOk); });
  work(first, firstOk);
  other.join();
  return firstOk & secondOk;
}

// A chain of kernels that alternates between the devices and is ordered only by events and copies. The events are recorded again before
// their earlier waits may have been executed. Ends in the first device's memory if the number of rounds is even. Returns the expected value
// without waiting.
unsigned startChain(Gpu& first, Gpu& second, unsigned rounds) {
  unsigned expected = first.read()[0];
  Gpu *from = &first, *to = &second;
  for (unsigned i = 0; i < rounds; ++i) {
    from->run(i);
    expected = expected * 3 + i;
    from->record();
    CHECK(cudaStreamWaitEvent(to->stream, from->event, 0));
    CHECK(cudaSetDevice(to->device));
    CHECK(cudaMemcpyPeerAsync(to->values, to->device, from->values, from->device, count * sizeof(unsigned), to->stream));
    to->record();
    CHECK(cudaStreamWaitEvent(from->stream, to->event, 0));  // `from` overwrites the copied value only now
    std::swap(from, to);
  }
  return expected;
}

bool chainGoesBackAndForth(Gpu& first, Gpu& second) {
  unsigned expected = startChain(first, second, 150);
  return allAre(first.read(), expected);
}

// An event that is waited for, recorded again and destroyed: each wait is for the record at the time of the call.
bool waitsAreForTheRecordOfTheCall(Gpu& first, Gpu& second) {
  CHECK(cudaSetDevice(first.device));
  cudaEvent_t event;
  std::atomic<bool> released{false};
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaStreamWaitEvent(second.stream, event, 0));  // never recorded, so nothing to wait for
  CHECK(cudaEventRecord(event, first.stream));
  CHECK(cudaStreamWaitEvent(second.stream, event, 0));
  CHECK(cudaLaunchHostFunc(first.stream, awaitFlag, &released));
  CHECK(cudaEventRecord(event, first.stream));  // behind the host function
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamSynchronize(second.stream));  // waits for the first record
  bool ok = EXPECT(!released);
  released = true;
  CHECK(cudaStreamSynchronize(first.stream));
  return ok;
}

// A wait on one device while the other's work is held.
bool idleGpuIsNotHeldUp(Gpu& busy, Gpu& idle) {
  std::atomic<bool> released{false};
  CHECK(cudaSetDevice(busy.device));
  CHECK(cudaLaunchHostFunc(busy.stream, awaitFlag, &released));
  for (unsigned i = 0; i < 500; ++i) busy.run(0);
  bool ok = true;
  for (unsigned i = 0; i < 20; ++i) {
    unsigned before = idle.read()[0];
    idle.run(1);
    ok &= allAre(idle.read(), before * 3 + 1);
  }
  CHECK(cudaSetDevice(idle.device));
  CHECK(cudaDeviceSynchronize());
  ok &= EXPECT(!released);
  released = true;
  CHECK(cudaSetDevice(busy.device));
  CHECK(cudaDeviceSynchronize());
  return ok;
}

// Objects of one device are used and destroyed while the other is current, and by a thread that did not make them.
bool objectsAreUsedFromAnywhere(Gpu& owner, int current) {
  CHECK(cudaSetDevice(owner.device));
  cudaStream_t stream;
  cudaEvent_t start, end;
  unsigned *value, *pinned;
  cudaArray_t array;
  auto format = cudaCreateChannelDesc<unsigned>();
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaMalloc(&value, 2 * sizeof(unsigned)));
  CHECK(cudaMallocHost(&pinned, sizeof(unsigned)));
  CHECK(cudaMallocArray(&array, &format, 16, 16));
  bool ok = true;
  std::thread user([&] {
    CHECK(cudaSetDevice(current));
    unsigned host[2] = {5, 6}, back[2] = {0, 0};
    CHECK(cudaMemcpy(value, host, sizeof host, cudaMemcpyHostToDevice));  // in a stream of the current device
    CHECK(cudaMemcpy(back, value, sizeof back, cudaMemcpyDeviceToHost));
    ok &= EXPECT(back[0] == 5 && back[1] == 6);
    std::vector<unsigned> image(256), seen(256);
    for (unsigned i = 0; i < 256; ++i) image[i] = i * 7;
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), 64, 64, 16, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DFromArray(seen.data(), 64, array, 0, 0, 64, 16, cudaMemcpyDeviceToHost));
    ok &= EXPECT(seen == image);
    CHECK(cudaSetDevice(owner.device));  // without peer access other devices cannot fill it
    CHECK(cudaMemset(value, 0, sizeof host));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(current));
    CHECK(cudaEventRecord(start, stream));
    CHECK(cudaMemcpyAsync(pinned, value, sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamSynchronize(stream));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, start, end));
    ok &= EXPECT(*pinned == 0 && milliseconds >= 0);
    CHECK(cudaFreeArray(array));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(value));
    CHECK(cudaFreeHost(pinned));
  });
  user.join();
  return ok;
}

// Copies between the devices in the legacy stream, each behind a wait for the earlier work.
bool copiesGoBetweenThem(int first, int second) {
  unsigned *source, *destination;
  CHECK(cudaSetDevice(first));
  CHECK(cudaMalloc(&source, sizeof(unsigned)));
  CHECK(cudaSetDevice(second));
  CHECK(cudaMalloc(&destination, sizeof(unsigned)));
  bool ok = true;
  for (unsigned i = 1; i <= 50; ++i) {
    unsigned seen = 0;
    CHECK(cudaSetDevice(first));
    store<<<1, 1>>>(source, i);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(second));
    CHECK(cudaMemcpy(destination, source, sizeof(unsigned), cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(&seen, destination, sizeof seen, cudaMemcpyDeviceToHost));
    ok &= EXPECT(seen == i);
  }
  CHECK(cudaFree(source));
  CHECK(cudaFree(destination));
  return ok;
}

bool everything(Gpu& first, Gpu& second) {
  bool ok = threadsWorkOnTheirOwn(first, second);
  ok &= chainGoesBackAndForth(first, second);
  ok &= waitsAreForTheRecordOfTheCall(first, second) & waitsAreForTheRecordOfTheCall(second, first);
  ok &= idleGpuIsNotHeldUp(first, second) & idleGpuIsNotHeldUp(second, first);
  ok &= objectsAreUsedFromAnywhere(second, 0) & objectsAreUsedFromAnywhere(first, 1);
  return ok & copiesGoBetweenThem(first.device, second.device);
}

}  // namespace

int main() {
  int devices;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return notHere;
  Gpu first(0), second(1);
  bool ok = everything(first, second);
  // Suspended with calls in both rings, some of which wait for the other's.
  unsigned expected = startChain(first, second, 60);
  pausePoint();
  ok &= allAre(first.read(), expected);
  ok &= everything(first, second);
  return verdict("two-gpus-at-once", ok);
}
