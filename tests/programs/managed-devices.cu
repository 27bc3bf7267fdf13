// Managed memory and pools of two devices: kernels of both, copies, fills and the host use the same memory in turn, and atomics of all work
// on it; attachment, advice, prefetches and access return CUDA's errors, and advice is kept over a pause and forgotten when the memory is
// freed. If the devices are not peers, concurrentManagedAccess may be 0. With an argument the pause is before there is any managed memory,
// and the devices may no longer be peers afterwards.
#include <vector>

#include "in-session.h"
#include "managed.h"
#include "peer-devices.h"

__global__ void add(int* data, int count, int value) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] += value;
}
__global__ void set(int* data, int count, int value) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] = value;
}
__global__ void countUp(unsigned* words, int rounds) {
  for (int i = 0; i < rounds; ++i) atomicAdd_system(&words[i % 4], 1u);
}
// Writes after a delay.
__global__ void writeLate(int* data, unsigned rounds) {
  unsigned mixed = 1;
  for (unsigned i = 0; i < rounds; ++i) mixed = mixed * 1664525u + i;
  data[0] = mixed == 0 ? 1 : 99;
}

namespace {

constexpr int count = 50000;
constexpr size_t bytes = count * sizeof(int);
constexpr cudaMemLocation host{cudaMemLocationTypeHost, 0}, node{cudaMemLocationTypeHostNuma, 0};
constexpr cudaMemLocation devices[2] = {{cudaMemLocationTypeDevice, 0}, {cudaMemLocationTypeDevice, 1}};

int* managed(int device = 0) {
  int* data = nullptr;
  CHECK(cudaSetDevice(device));
  CHECK(cudaMallocManaged(&data, bytes));
  return data;
}

bool holds(const int* data, int value) {
  for (int i = 0; i < count; ++i)
    if (data[i] != value) return EXPECT(data[i] == value);
  return true;
}

// One device's last writes are visible to the other, whichever was current when the memory was allocated.
bool isUsedByAll(int* data) {
  const int first = data[count - 1];
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    add<<<1, 128>>>(data, count, 1 + device);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) data[i] += 10;
  }
  return holds(data, first + 23);
}

// The host has never touched the memory before it reads what the device that was not current has written.
bool isWrittenFirst(int owner) {
  int* data = managed(owner);
  CHECK(cudaSetDevice(1 - owner));
  set<<<1, 128>>>(data, count, 5);
  CHECK(cudaDeviceSynchronize());
  const bool ok = holds(data, 5);
  CHECK(cudaFree(data));
  return ok;
}

struct Streams {
  Streams() {
    for (int device : {0, 1}) {
      CHECK(cudaSetDevice(device));
      CHECK(cudaStreamCreateWithFlags(&of[device], cudaStreamNonBlocking));
      CHECK(cudaEventCreateWithFlags(&done[device], cudaEventDisableTiming));
    }
  }
  ~Streams() {
    for (int device : {0, 1}) {
      CHECK(cudaSetDevice(device));
      CHECK(cudaStreamDestroy(of[device]));
      CHECK(cudaEventDestroy(done[device]));
    }
  }
  // Orders this device's later work behind the other one's present work.
  void follow(int device) {
    CHECK(cudaSetDevice(1 - device));
    CHECK(cudaEventRecord(done[1 - device], of[1 - device]));
    CHECK(cudaSetDevice(device));
    CHECK(cudaStreamWaitEvent(of[device], done[1 - device], 0));
  }

  cudaStream_t of[2];
  cudaEvent_t done[2];
};

// Kernels of both devices in turn without the host in between, then copies and fills in streams of both.
bool isHandedOver(int* data) {
  const int first = data[0];
  Streams streams;
  for (int i = 0; i < 6; ++i) {
    streams.follow(i % 2);
    add<<<1, 128, 0, streams.of[i % 2]>>>(data, count, 1 + i);
  }
  CHECK(cudaStreamSynchronize(streams.of[1]));
  bool ok = holds(data, first + 21);

  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    int* plain = nullptr;
    std::vector<int> values(count, 100 + device);
    CHECK(cudaMalloc(&plain, bytes));
    CHECK(cudaMemcpy(plain, values.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());  // non-blocking streams use it
    data[1] = 0;  // overwritten by the copy
    CHECK(cudaMemcpyAsync(data, plain, bytes, cudaMemcpyDefault, streams.of[device]));
    add<<<1, 128, 0, streams.of[device]>>>(data, count, 1);
    CHECK(cudaMemcpyAsync(plain, data, bytes, cudaMemcpyDefault, streams.of[device]));
    streams.follow(1 - device);
    add<<<1, 128, 0, streams.of[1 - device]>>>(data, count, 1);
    CHECK(cudaStreamSynchronize(streams.of[1 - device]));
    ok &= holds(data, 102 + device);
    for (int i = 0; i < count; ++i) ++data[i];
    CHECK(cudaSetDevice(device));
    CHECK(cudaMemcpy(values.data(), data, bytes, cudaMemcpyDefault));
    ok &= same("copied", values, std::vector<int>(count, 103 + device));
    CHECK(cudaMemcpy(values.data(), plain, bytes, cudaMemcpyDefault));
    ok &= same("plain", values, std::vector<int>(count, 101 + device));
    CHECK(cudaMemsetAsync(data, 1, bytes, streams.of[device]));
    CHECK(cudaStreamSynchronize(streams.of[device]));
    ok &= holds(data, 0x01010101);
    CHECK(cudaMemcpyPeer(data, 1 - device, plain, device, bytes));
    CHECK(cudaDeviceSynchronize());
    ok &= holds(data, 101 + device);
    CHECK(cudaFree(plain));
  }
  return ok;
}

// Concurrent additions of both devices and the host.
bool atomicsMeet() {
  constexpr int blocks = 8, threads = 32, rounds = 100;
  Streams streams;
  unsigned* words = nullptr;
  CHECK(cudaMallocManaged(&words, 4 * sizeof *words));
  for (int i = 0; i < 4; ++i) words[i] = 0;
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    loadKernel(countUp);
  }
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    countUp<<<blocks, threads, 0, streams.of[device]>>>(words, rounds);
  }
  auto isBusy = [&](int device) { return cudaStreamQuery(streams.of[device]) == cudaErrorNotReady; };
  unsigned added = 0;
  do {
    for (int i = 0; i < 4; ++i) __atomic_fetch_add(&words[i], 1u, __ATOMIC_SEQ_CST);
    ++added;
  } while (added < 1000 || isBusy(0) || isBusy(1));
  for (int device : {0, 1}) CHECK(cudaStreamSynchronize(streams.of[device]));
  bool ok = true;
  for (int i = 0; i < 4; ++i) ok &= EXPECT(words[i] == added + 2u * blocks * threads * rounds / 4);
  CHECK(cudaFree(words));
  return ok;
}

// Memory is freed only when no device uses it any more: an earlier kernel does not write to new, zeroed memory at its address. Natively
// neither is guaranteed.
bool freeWaitsForAll() {
  int* data = managed(0);
  CHECK(cudaSetDevice(1));
  writeLate<<<1, 1>>>(data, 2 * 1000 * 1000);
  CHECK(cudaFree(data));
  int* next = managed(0);
  CHECK(cudaSetDevice(1));
  add<<<1, 128>>>(next, count, 1);
  CHECK(cudaDeviceSynchronize());
  const bool ok = EXPECT(next == data) & holds(next, 1);
  CHECK(cudaFree(next));
  return ok;
}

bool isDescribed(const int* data, int device) {
  cudaPointerAttributes attributes{};
  CHECK(cudaPointerGetAttributes(&attributes, data + 1));
  return EXPECT(attributes.type == cudaMemoryTypeManaged) & EXPECT(attributes.device == device) &
         EXPECT(attributes.devicePointer == data + 1) & EXPECT(attributes.hostPointer == data + 1);
}

bool isAttached(int* data) {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  bool ok = true;
  for (unsigned flags : {cudaMemAttachSingle, cudaMemAttachGlobal, cudaMemAttachHost, cudaMemAttachSingle})
    ok &= EXPECT_ERROR(cudaStreamAttachMemAsync(stream, data, flags == cudaMemAttachHost ? bytes : 0, flags), cudaSuccess);
  ok &= EXPECT_ERROR(cudaStreamAttachMemAsync(nullptr, data, 0, cudaMemAttachGlobal), cudaSuccess);
  add<<<1, 128, 0, stream>>>(data, count, 1);
  CHECK(cudaStreamSynchronize(stream));
  ok &= EXPECT_ERROR(cudaStreamAttachMemAsync(nullptr, data, 0, cudaMemAttachSingle), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaStreamAttachMemAsync(stream, data, bytes / 2, cudaMemAttachSingle), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaStreamAttachMemAsync(stream, data, bytes + 4096, cudaMemAttachSingle), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaStreamAttachMemAsync(stream, data + 1, 0, cudaMemAttachSingle), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaStreamAttachMemAsync(stream, data, 0, 3), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaStreamAttachMemAsync(stream, &ok, 0, cudaMemAttachGlobal), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

int rangeAttribute(const int* data, cudaMemRangeAttribute attribute) {
  int value = -7;
  CHECK(cudaMemRangeGetAttribute(&value, sizeof value, attribute, data, bytes));
  return value;
}

// Advice that names a device needs one with concurrent managed access.
bool isAdvised(int* data) {
  const bool isEach = isConcurrent(0) && isConcurrent(1);
  const cudaError_t ofDevice = isEach ? cudaSuccess : cudaErrorInvalidDevice;
  bool ok = EXPECT_ERROR(cudaMemAdvise(data, bytes, cudaMemAdviseSetReadMostly, devices[1]), cudaSuccess) &
            EXPECT_ERROR(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, devices[0]), ofDevice) &
            EXPECT_ERROR(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, host), cudaSuccess) &
            EXPECT_ERROR(cudaMemAdvise(data, bytes, cudaMemAdviseSetAccessedBy, devices[1]), ofDevice) &
            EXPECT_ERROR(cudaMemAdvise(data, bytes, cudaMemAdviseSetAccessedBy, host), cudaSuccess) &
            EXPECT_ERROR(cudaMemAdvise(data, bytes, cudaMemAdviseSetAccessedBy, node), cudaErrorInvalidValue) &
            EXPECT_ERROR(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, {cudaMemLocationTypeDevice, 99}),
                         cudaErrorInvalidValue) &
            EXPECT_ERROR(cudaMemAdvise(data, bytes + 65536, cudaMemAdviseSetReadMostly, host), cudaErrorInvalidValue) &
            EXPECT_ERROR(cudaMemAdvise(&ok, 1, cudaMemAdviseSetReadMostly, host), cudaErrorInvalidValue) &
            EXPECT_ERROR(cudaHostRegister(data, bytes, 0), cudaErrorInvalidValue);
  cudaGetLastError();
  return ok;
}

// To both devices and the host, in streams of both; each device uses it at its present location.
bool isPrefetched(int* data) {
  const bool isEach = isConcurrent(0) && isConcurrent(1);
  const cudaError_t wanted = isEach ? cudaSuccess : cudaErrorInvalidDevice;
  const int first = data[0];
  int more = 0;
  bool ok = true;
  for (int current : {0, 1})
    for (int to : {1, 0}) {
      CHECK(cudaSetDevice(current));
      for (int i = 0; i < count; ++i) ++data[i];
      ok &= EXPECT_ERROR(cudaMemPrefetchAsync(data, bytes, devices[to], 0, nullptr), wanted);
      CHECK(cudaDeviceSynchronize());
      if (isEach) ok &= EXPECT(rangeAttribute(data, cudaMemRangeAttributeLastPrefetchLocation) == to);
      CHECK(cudaSetDevice(to));
      add<<<1, 128>>>(data, count, 1);
      CHECK(cudaDeviceSynchronize());
      ok &= EXPECT_ERROR(cudaMemPrefetchAsync(data, bytes, host, 0, nullptr), wanted);
      CHECK(cudaDeviceSynchronize());
      if (isEach) ok &= EXPECT(rangeAttribute(data, cudaMemRangeAttributeLastPrefetchLocation) == cudaCpuDeviceId);
      more += 2;
      ok &= holds(data, first + more);
    }
  cudaGetLastError();
  return ok;
}

bool keepsAdvice(const int* data) {
  std::vector<int> accessors(3, -7), wanted = {cudaCpuDeviceId, cudaInvalidDeviceId, cudaInvalidDeviceId};
  if (isConcurrent(1)) wanted = {1, cudaCpuDeviceId, cudaInvalidDeviceId};
  CHECK(cudaMemRangeGetAttribute(accessors.data(), accessors.size() * sizeof(int), cudaMemRangeAttributeAccessedBy, data, bytes));
  return EXPECT(rangeAttribute(data, cudaMemRangeAttributeReadMostly) == 1) &
         EXPECT(rangeAttribute(data, cudaMemRangeAttributePreferredLocation) == cudaCpuDeviceId) & EXPECT(accessors == wanted);
}

bool poolIsShown() {
  cudaMemPool_t pool;
  cudaMemPoolProps of{};
  of.allocType = cudaMemAllocationTypePinned;
  of.location = devices[0];
  CHECK(cudaMemPoolCreate(&pool, &of));
  auto give = [&](cudaMemLocation to, int flags) {
    const cudaMemAccessDesc access{to, static_cast<cudaMemAccessFlags>(flags)};
    return cudaMemPoolSetAccess(pool, &access, 1);
  };
  auto flagsOf = [&](int device) {
    cudaMemLocation location = devices[device];
    cudaMemAccessFlags flags;
    CHECK(cudaMemPoolGetAccess(&flags, pool, &location));
    return flags;
  };
  bool ok = EXPECT(flagsOf(0) == cudaMemAccessFlagsProtReadWrite) & EXPECT(flagsOf(1) == cudaMemAccessFlagsProtNone);
  CHECK(cudaSetDevice(0));
  int* data = nullptr;
  CHECK(cudaMallocFromPoolAsync(&data, bytes, pool, nullptr));
  CHECK(cudaMemsetAsync(data, 0, bytes, nullptr));
  CHECK(cudaStreamSynchronize(nullptr));
  ok &= EXPECT_ERROR(give(devices[1], cudaMemAccessFlagsProtReadWrite), cudaSuccess) &
        EXPECT(flagsOf(1) == cudaMemAccessFlagsProtReadWrite);
  CHECK(cudaSetDevice(1));
  add<<<1, 128>>>(data, count, 4);  // allocated before
  CHECK(cudaDeviceSynchronize());
  std::vector<int> found(count);
  CHECK(cudaMemcpy(found.data(), data, bytes, cudaMemcpyDefault));
  ok &= EXPECT(found[0] == 4) & EXPECT(found[count - 1] == 4);
  ok &= EXPECT_ERROR(give(devices[1], 2), cudaErrorInvalidValue) & EXPECT(flagsOf(1) == cudaMemAccessFlagsProtReadWrite) &
        EXPECT_ERROR(give(devices[1], cudaMemAccessFlagsProtNone), cudaSuccess) &
        EXPECT(flagsOf(1) == cudaMemAccessFlagsProtNone) &
        EXPECT_ERROR(give(devices[0], cudaMemAccessFlagsProtNone), cudaErrorInvalidDevice) &
        EXPECT_ERROR(give({cudaMemLocationTypeDevice, 99}, cudaMemAccessFlagsProtReadWrite), cudaErrorInvalidDevice) &
        EXPECT_ERROR(give({cudaMemLocationTypeDevice, 99}, cudaMemAccessFlagsProtRead), cudaErrorNotSupported) &
        EXPECT_ERROR(give(host, cudaMemAccessFlagsProtReadWrite), cudaErrorNotSupported);
  cudaGetLastError();
  CHECK(cudaFree(data));
  CHECK(cudaMemPoolDestroy(pool));
  return ok;
}

}  // namespace

int main(int argc, char**) {
  const bool pausesFirst = argc > 1;
  int there = 0;
  CHECK(cudaGetDeviceCount(&there));
  if (there < 2) return notHere;
  if (pausesFirst) pausePoint();
  int* data[] = {managed(0), managed(1)};
  const bool isEach = isConcurrent(0) && isConcurrent(1);
  bool ok = EXPECT(isEach || !devicesReachEachOther());
  auto work = [&] {
    bool all = isWrittenFirst(0) & isWrittenFirst(1);
    for (int device : {0, 1}) all &= isUsedByAll(data[device]) & isHandedOver(data[device]) & isDescribed(data[device], device);
    if (isEach) all &= atomicsMeet();
    if (isEach && inSession && !pausesFirst) all &= freeWaitsForAll();
    return all;
  };
  for (int* each : data)
    for (int i = 0; i < count; ++i) each[i] = 1;
  ok &= work();
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    ok &= isAttached(data[device]) & isPrefetched(data[device]) & isAdvised(data[device]) & keepsAdvice(data[device]);
  }
  // Over the pause one piece has the other device's last writes, and one the host's.
  const int before = data[0][0];
  CHECK(cudaSetDevice(1));
  add<<<1, 128>>>(data[0], count, 3);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < count; ++i) data[1][i] = 7;
  pausePoint();
  ok &= holds(data[0], before + 3);
  CHECK(cudaSetDevice(0));
  add<<<1, 128>>>(data[1], count, 1);
  CHECK(cudaDeviceSynchronize());
  ok &= holds(data[1], 8) & keepsAdvice(data[0]) & keepsAdvice(data[1]) & work();
  ok &= isPrefetched(data[0]) & isPrefetched(data[1]);
  if (devicesReachEachOther() && !pausesFirst) ok &= poolIsShown();
  for (int* each : data) CHECK(cudaFree(each));
  int* next = managed();
  ok &= EXPECT(rangeAttribute(next, cudaMemRangeAttributeReadMostly) == 0) &
        EXPECT(rangeAttribute(next, cudaMemRangeAttributePreferredLocation) == cudaInvalidDeviceId);
  CHECK(cudaFree(next));
  return verdict("managed-devices", ok);
}
