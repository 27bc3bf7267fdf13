// Managed memory and pools of two devices: kernels of both and the host use one piece in turn; attachment, advice, prefetches and
// access give CUDA's errors, and what was said of memory is kept over a pause and forgotten with the memory.
#include <vector>

#include "peer-devices.h"

__global__ void add(int* data, int count, int value) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] += value;
}

namespace {

constexpr int count = 5000;
constexpr size_t bytes = count * sizeof(int);
constexpr cudaMemLocation host{cudaMemLocationTypeHost, 0}, node{cudaMemLocationTypeHostNuma, 0};
constexpr cudaMemLocation devices[2] = {{cudaMemLocationTypeDevice, 0}, {cudaMemLocationTypeDevice, 1}};

int* managed() {
  int* data = nullptr;
  CHECK(cudaMallocManaged(&data, bytes));
  return data;
}

bool isConcurrent(int device) {
  int value = 1;
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrConcurrentManagedAccess, device));
  return value != 0;
}

bool isUsedByAll(int* data) {
  const int first = data[count - 1];
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    add<<<1, 128>>>(data, count, 1 + device);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) data[i] += 10;
  }
  return EXPECT(data[0] == data[count - 1]) & EXPECT(data[0] == first + 23);
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

// What names a device needs one that is at managed memory while others are.
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
  for (int device : {0, 1})
    ok &= EXPECT_ERROR(cudaMemPrefetchAsync(data, bytes, devices[device], 0, nullptr), ofDevice) &
          EXPECT_ERROR(cudaMemPrefetchAsync(data, bytes, host, 0, nullptr), ofDevice);
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

int main() {
  if (!devicesReachEachOther()) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // emulated devices do
  int* data = managed();
  bool ok = isUsedByAll(data);
  ok &= isAttached(data);
  ok &= isAdvised(data) & keepsAdvice(data);
  pausePoint();
  ok &= keepsAdvice(data) & isUsedByAll(data) & poolIsShown();
  CHECK(cudaFree(data));
  int* next = managed();
  ok &= EXPECT(rangeAttribute(next, cudaMemRangeAttributeReadMostly) == 0) &
        EXPECT(rangeAttribute(next, cudaMemRangeAttributePreferredLocation) == cudaInvalidDeviceId);
  CHECK(cudaFree(next));
  return verdict("managed-devices", ok);
}
