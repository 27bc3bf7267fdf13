// Two peer devices: kernels of one read and write the other's memory, atomics of both work on it, copies are ordered among the streams of
// both, and enabled access stays enabled over a pause. Not applicable without two such devices.
#include <vector>

#include "peer-devices.h"

__global__ void add(unsigned* to, const unsigned* from, unsigned count) {
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) to[i] += from[i];
}
__global__ void countUp(unsigned* counter) { atomicAdd_system(counter, 1); }

namespace {

constexpr unsigned count = 3000;
constexpr size_t bytes = count * sizeof(unsigned);

unsigned* filled(int device, unsigned value) {
  CHECK(cudaSetDevice(device));
  unsigned* memory;
  CHECK(cudaMalloc(&memory, bytes));
  const std::vector<unsigned> values(count, value);
  CHECK(cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());  // non-blocking streams use it
  return memory;
}

bool holds(const unsigned* memory, unsigned value) {
  std::vector<unsigned> values(count);
  CHECK(cudaMemcpy(values.data(), memory, bytes, cudaMemcpyDeviceToHost));
  for (unsigned each : values)
    if (each != value) return EXPECT(each == value);
  return true;
}

// Results of enabling and disabling access, whatever its earlier state.
bool answers() {
  CHECK(cudaSetDevice(0));
  return EXPECT_ERROR(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled) &
         EXPECT_ERROR(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue) &
         EXPECT_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess) &
         EXPECT_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled) &
         EXPECT_ERROR(cudaDeviceDisablePeerAccess(1), cudaSuccess) &
         EXPECT_ERROR(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
}

// The driver's attributes of atomics between the two.
bool atomicsAreDescribed() {
  const cudaAtomicOperation operations[] = {cudaAtomicOperationIntegerAdd, cudaAtomicOperationCAS};
  unsigned capabilities[2] = {~0u, ~0u};
  CHECK(cudaDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 1));
  bool ok = EXPECT_ERROR(cudaDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 999), cudaErrorInvalidDevice);
  for (unsigned each : capabilities) ok &= EXPECT(each < 128u);
  return ok;
}

struct Memory {
  unsigned *mine, *before, *after;  // on device 0; on device 1, allocated before and after access was enabled
  unsigned* pooled;                 // on device 1, from a pool
  unsigned* counter;
};

unsigned* ofPool() {
  CHECK(cudaSetDevice(1));
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 1));
  cudaMemAccessDesc access{};
  access.location = {cudaMemLocationTypeDevice, 0};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  CHECK(cudaMemPoolSetAccess(pool, &access, 1));
  cudaMemAccessFlags flags;
  CHECK(cudaMemPoolGetAccess(&flags, pool, &access.location));
  EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
  void* memory;
  CHECK(cudaMallocAsync(&memory, bytes, nullptr));
  CHECK(cudaMemsetAsync(memory, 0, bytes, nullptr));
  CHECK(cudaStreamSynchronize(nullptr));
  return static_cast<unsigned*>(memory);
}

// Device 0's kernels add to all memory of device 1; afterwards each word has `times` times its value.
bool kernelsReach(const Memory& memory, unsigned times) {
  CHECK(cudaSetDevice(0));
  for (unsigned* there : {memory.before, memory.after, memory.pooled}) add<<<1, 128>>>(there, memory.mine, count);
  CHECK(cudaDeviceSynchronize());
  return holds(memory.before, 10 + times) & holds(memory.after, 20 + times) & holds(memory.pooled, times);
}

// Kernels of both devices count in one word of device 1.
bool atomicsMeet(const Memory& memory) {
  constexpr unsigned each = 640;
  CHECK(cudaSetDevice(1));
  CHECK(cudaMemset(memory.counter, 0, sizeof(unsigned)));
  CHECK(cudaDeviceSynchronize());
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    countUp<<<each / 64, 64>>>(memory.counter);
  }
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaDeviceSynchronize());
  }
  unsigned value = 0;
  CHECK(cudaMemcpy(&value, memory.counter, sizeof value, cudaMemcpyDeviceToHost));
  return EXPECT(value == 2 * each);
}

// A kernel of device 1, then a copy to device 0, then a kernel of device 0.
bool copiesAreOrdered(const Memory& memory) {
  cudaStream_t streams[2];
  cudaEvent_t done[2];
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done[device], cudaEventDisableTiming));
  }
  unsigned *source = filled(1, 1), *twice = filled(1, 0), *target = filled(0, 0);
  CHECK(cudaSetDevice(1));
  for (int i = 0; i < 5; ++i) add<<<1, 128, 0, streams[1]>>>(twice, source, count);
  CHECK(cudaMemcpyPeerAsync(target, 0, twice, 1, bytes, streams[1]));
  CHECK(cudaEventRecord(done[1], streams[1]));
  CHECK(cudaSetDevice(0));
  CHECK(cudaStreamWaitEvent(streams[0], done[1], 0));
  add<<<1, 128, 0, streams[0]>>>(target, memory.mine, count);
  cudaMemcpy3DPeerParms box{};
  box.srcDevice = 0;
  box.dstDevice = 1;
  box.srcPtr = make_cudaPitchedPtr(target, 1000, 1000, 4);
  box.dstPtr = make_cudaPitchedPtr(source, 1000, 1000, 4);
  box.extent = make_cudaExtent(1000, 4, 3);
  CHECK(cudaMemcpy3DPeerAsync(&box, streams[0]));
  CHECK(cudaStreamSynchronize(streams[0]));
  bool ok = holds(target, 6) & holds(source, 6);
  CHECK(cudaMemcpyPeer(twice, 1, memory.mine, 0, bytes));
  ok &= holds(twice, 1);
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaStreamDestroy(streams[device]));
    CHECK(cudaEventDestroy(done[device]));
  }
  for (unsigned* each : {source, twice, target}) CHECK(cudaFree(each));
  return ok;
}

// Memory of device 1's pool, allocated and freed in streams of either device: each use is behind the allocation and before the free, and
// memory freed in a stream of one device is not reused before that stream has reached the free.
bool poolsCrossDevices(const Memory& memory) {
  cudaStream_t streams[2];
  cudaEvent_t done[2];
  cudaMemPool_t pool;
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done[device], cudaEventDisableTiming));
  }
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 1));
  unsigned *sum = filled(0, 0), *ones = filled(1, 1);
  constexpr unsigned rounds = 20;
  bool ok = true;
  for (unsigned round = 0; round < rounds; ++round) {
    const int allocating = round % 2, freeing = round / 2 % 2;
    void* pooled = nullptr;
    CHECK(cudaSetDevice(allocating));
    ok &= EXPECT_ERROR(cudaMallocFromPoolAsync(&pooled, bytes, pool, streams[allocating]), cudaSuccess);
    if (!ok) return false;
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, pooled));
    ok &= EXPECT(attributes.device == 1);
    CHECK(cudaMemsetAsync(pooled, 0, bytes, streams[allocating]));
    CHECK(cudaEventRecord(done[allocating], streams[allocating]));
    CHECK(cudaSetDevice(1));
    CHECK(cudaStreamWaitEvent(streams[1], done[allocating], 0));
    add<<<1, 128, 0, streams[1]>>>(static_cast<unsigned*>(pooled), ones, count);
    CHECK(cudaEventRecord(done[1], streams[1]));
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamWaitEvent(streams[0], done[1], 0));
    add<<<1, 128, 0, streams[0]>>>(sum, static_cast<unsigned*>(pooled), count);
    CHECK(cudaEventRecord(done[0], streams[0]));
    CHECK(cudaSetDevice(freeing));
    CHECK(cudaStreamWaitEvent(streams[freeing], done[0], 0));
    ok &= EXPECT_ERROR(cudaFreeAsync(pooled, streams[freeing]), cudaSuccess);
    ok &= EXPECT_ERROR(cudaFreeAsync(pooled, streams[freeing]), cudaErrorInvalidValue);
    cudaGetLastError();
  }
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaStreamSynchronize(streams[device]));
    CHECK(cudaStreamDestroy(streams[device]));
    CHECK(cudaEventDestroy(done[device]));
  }
  unsigned long long used = 1;
  CHECK(cudaFreeAsync(memory.pooled, nullptr));  // a driver counts memory freed with cudaFree as used for ever
  CHECK(cudaStreamSynchronize(nullptr));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  ok &= holds(sum, rounds) & EXPECT(used == 0);
  for (unsigned* each : {sum, ones}) CHECK(cudaFree(each));
  return ok;
}

}  // namespace

int main() {
  if (!devicesReachEachOther()) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // emulated devices are peers
  bool ok = answers() & atomicsAreDescribed();
  Memory memory{};
  memory.mine = filled(0, 1);
  memory.before = filled(1, 10);
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0));
  memory.after = filled(1, 20);
  memory.counter = filled(1, 0);
  memory.pooled = ofPool();

  ok &= kernelsReach(memory, 1) & atomicsMeet(memory) & copiesAreOrdered(memory);
  pausePoint();
  CHECK(cudaSetDevice(0));
  ok &= EXPECT_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  ok &= kernelsReach(memory, 2) & atomicsMeet(memory) & copiesAreOrdered(memory);
  ok &= poolsCrossDevices(memory);
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceDisablePeerAccess(1));
  return verdict("peers", ok & answers());
}
