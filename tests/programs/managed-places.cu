// Managed memory lies in the memory of the device to which it was last prefetched, slice by slice, or which is its preferred location, also
// after a pause; writes of host and kernels are visible wherever it lies. A prefetch returns although pending work waits for the program;
// memory that cannot move then moves with a later prefetch. With an argument device 0 becomes so full that memory that was moved away does
// not fit any more, and stays on device 1 over the pause. A device's memory use is checked in a session only: natively a driver takes more
// than it moves, and keeps memory that was moved away.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "in-session.h"
#include "managed.h"
#include "peer-devices.h"

__global__ void add(int* data, size_t count, int value) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) data[i] += value;
}

namespace {

constexpr size_t MiB = 1 << 20, bytes = 32 * MiB, count = bytes / sizeof(int), slice = bytes / 2;
constexpr size_t checked = count / 97;  // checks one of so many elements

size_t freeOn(int device) {
  size_t free = 0, total = 0;
  CHECK(cudaSetDevice(device));
  CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

void prefetch(const void* data, size_t size, int device) {
  CHECK(cudaMemPrefetchAsync(data, size, {cudaMemLocationTypeDevice, device}, 0, nullptr));
  for (int each : {0, 1}) {
    CHECK(cudaSetDevice(each));
    CHECK(cudaDeviceSynchronize());
  }
}

void addOn(int device, int* data, size_t elements, int value) {
  CHECK(cudaSetDevice(device));
  add<<<64, 256>>>(data, elements, value);
  CHECK(cudaDeviceSynchronize());
}

bool holds(const int* data, int value) {
  for (size_t i = 0; i < count; i += checked)
    if (data[i] != value) return EXPECT(data[i] == value);
  return EXPECT(data[count - 1] == value);
}

// Whether device 1 uses `size` more bytes than when it had `before` free, except for what the driver takes itself.
bool hasTaken(size_t before, size_t size) {
  if (!inSession) return true;
  const size_t now = freeOn(1), taken = before > now ? before - now : 0;
  const bool ok = size == 0 ? taken < 8 * MiB : taken > size - 8 * MiB && taken < size + 8 * MiB;
  if (!ok) std::printf("device 1 has taken %zu bytes instead of %zu\n", taken, size);
  return ok;
}

// All of it, there and back.
bool isMoved(int* data, size_t before, int value) {
  prefetch(data, bytes, 1);
  bool ok = hasTaken(before, bytes);
  addOn(1, data, count, 1);
  addOn(0, data, count, 1);
  ok &= holds(data, value + 2);
  prefetch(data, bytes, 0);
  ok &= hasTaken(before, 0) & holds(data, value + 2);
  return ok;
}

// One slice on each device, repeatedly, with a boundary between slices that is not at a page boundary.
bool isDivided(int* data, size_t before, int value) {
  const size_t first = slice - 4096 * 3;
  bool ok = true;
  for (int round = 0; round < 3; ++round) {
    prefetch(data, first, round == 1 ? 1 : 0);
    prefetch(data + first / sizeof(int), bytes - first, round == 1 ? 0 : 1);
    ok &= hasTaken(before, slice);
    addOn(0, data, count, 1);
    addOn(1, data + first / sizeof(int), count - first / sizeof(int), 1);
    addOn(1, data, first / sizeof(int), 1);
    ok &= holds(data, value + 2 * (round + 1));
  }
  return ok;
}

// While a stream of device 0 waits for the program. Natively the memory moves at once.
bool isMovedLater(int* data, size_t before) {
  std::atomic<bool> goOn{false};
  CHECK(cudaSetDevice(0));
  cudaStream_t held;
  CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  CHECK(cudaLaunchHostFunc(held, [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }, &goOn));
  CHECK(cudaMemPrefetchAsync(data, bytes, {cudaMemLocationTypeDevice, 1}, 0, nullptr));
  goOn = true;
  CHECK(cudaStreamSynchronize(held));
  CHECK(cudaStreamDestroy(held));
  prefetch(data, 4096, 1);
  return hasTaken(before, bytes);
}

bool isPreferred(int* data, size_t before) {
  CHECK(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, {cudaMemLocationTypeDevice, 1}));
  addOn(1, data, count, 1);
  bool ok = hasTaken(before, bytes);
  CHECK(cudaMemAdvise(data, bytes, cudaMemAdviseUnsetPreferredLocation, {cudaMemLocationTypeDevice, 1}));
  return ok;
}

int staysAway() {
  size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total));
  const size_t size = total / 10 * 6;
  int *data = nullptr, *other = nullptr;
  CHECK(cudaMallocManaged(&data, size));
  addOn(0, data, count, 4);
  prefetch(data, size, 1);
  CHECK(cudaSetDevice(0));
  CHECK(cudaMalloc(&other, size));
  CHECK(cudaMemset(other, 7, size));
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  bool ok = holds(data, 4) & EXPECT(!inSession || freeOn(0) < size);
  int value = 0;
  CHECK(cudaMemcpy(&value, other + size / sizeof(int) - 1, sizeof value, cudaMemcpyDefault));
  ok &= EXPECT(value == 0x07070707);
  prefetch(data, size, 0);  // there is no room
  addOn(1, data, count, 1);
  ok &= holds(data, 5);
  CHECK(cudaFree(data));
  CHECK(cudaFree(other));
  return verdict("managed-places", ok);
}

}  // namespace

int main(int argc, char**) {
  int there = 0;
  CHECK(cudaGetDeviceCount(&there));
  if (there < 2 || !devicesReachEachOther() || !isConcurrent(0) || !isConcurrent(1)) return notHere;
  for (int device : {1, 0}) {
    CHECK(cudaSetDevice(device));
    loadKernel(add);
  }
  if (argc > 1) return staysAway();
  int* data = nullptr;
  CHECK(cudaMallocManaged(&data, bytes));
  for (size_t i = 0; i < count; ++i) data[i] = 0;
  prefetch(data, bytes, 0);
  const size_t before = freeOn(1);
  bool ok = isMoved(data, before, 0) & isDivided(data, before, 2);
  prefetch(data, bytes, 0);
  ok &= isPreferred(data, before);
  prefetch(data, bytes, 0);
  ok &= isMovedLater(data, before) & holds(data, 9);

  pausePoint();
  const size_t moved = freeOn(1);
  prefetch(data, bytes, 0);
  const size_t back = freeOn(1);
  if (inSession) ok &= EXPECT(back > moved && back - moved > bytes - 8 * MiB && back - moved < bytes + 8 * MiB);
  ok &= holds(data, 9);
  ok &= isMoved(data, back, 9) & isDivided(data, back, 11);

  // Memory freed on device 1 becomes free there, and not on device 0.
  prefetch(data, bytes, 1);
  const size_t beside = freeOn(0);
  CHECK(cudaFree(data));
  ok &= hasTaken(back, 0) & EXPECT(!inSession || freeOn(0) < beside + 8 * MiB);

  // New memory at its addresses lies on the current device.
  CHECK(cudaSetDevice(0));
  CHECK(cudaMallocManaged(&data, bytes));
  addOn(0, data, count, 5);
  ok &= hasTaken(back, 0) & holds(data, 5);
  CHECK(cudaFree(data));
  return verdict("managed-places", ok);
}
