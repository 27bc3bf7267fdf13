// Pools of host memory and of managed memory: program and kernels use it at one address, memory freed in a stream is reused there at once
// but never too early by other streams, and everything is unchanged after a pause.
#include "await-flag.h"
#include "host-pool.h"
#include "program.h"

__global__ void addEach(int* data, int value, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}
__global__ void addTo(int* sum, const int* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(sum, data[i]);
}

namespace {

constexpr int count = 4096, blocks = count / 256;

int* allocate(cudaMemPool_t pool, cudaStream_t stream) {
  int* data;
  CHECK(cudaMallocFromPoolAsync(&data, count * sizeof(int), pool, stream));
  return data;
}

uint64_t usedOf(cudaMemPool_t pool) {
  uint64_t used = 0;
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  return used;
}

int sumOf(const int* data) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += data[i];
  return sum;
}

// One stream waits, reads memory and frees it behind that; another one allocates and writes meanwhile.
bool keepsStreamsApart(cudaMemPool_t pool) {
  cudaStream_t slow, fast;
  CHECK(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&fast, cudaStreamNonBlocking));
  std::atomic<bool> go{false};
  DeviceArray<int> sum(std::vector<int>{0});
  int* first = allocate(pool, slow);
  CHECK(cudaStreamSynchronize(slow));
  for (int i = 0; i < count; ++i) first[i] = 3;
  addEach<<<blocks, 256, 0, slow>>>(first, 1, count);
  CHECK(cudaLaunchHostFunc(slow, awaitFlag, &go));
  addTo<<<blocks, 256, 0, slow>>>(sum, first, count);
  CHECK(cudaFreeAsync(first, slow));
  int* again = allocate(pool, slow);
  bool ok = EXPECT(again == first) & EXPECT(usedOf(pool) == count * sizeof(int));
  CHECK(cudaFreeAsync(again, slow));
  for (int i = 0; i < 5; ++i) {
    int* other = allocate(pool, fast);
    ok &= EXPECT(other != first);
    CHECK(cudaMemsetAsync(other, 1, count * sizeof(int), fast));
    CHECK(cudaFreeAsync(other, fast));
  }
  CHECK(cudaStreamSynchronize(fast));
  go = true;
  CHECK(cudaStreamSynchronize(slow));
  CHECK(cudaStreamDestroy(slow));
  CHECK(cudaStreamDestroy(fast));
  return ok & same("sum of what was freed behind it", sum.download(), {4 * count}) & EXPECT(usedOf(pool) == 0);
}

// Far more memory in total than the pool keeps, never much at once, in two streams.
bool usesAgain(cudaMemPool_t pool) {
  cudaStream_t streams[2];
  for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  bool ok = true;
  for (int i = 0; i < 40; ++i) {
    cudaStream_t stream = streams[i % 2];
    char* data;
    const size_t bytes = (size_t{1} << 20) + i / 4 * 5000;
    CHECK(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&data), bytes, pool, stream));
    CHECK(cudaMemsetAsync(data, i, bytes, stream));
    CHECK(cudaStreamSynchronize(stream));
    ok &= EXPECT(data[0] == i && data[bytes - 1] == i);
    CHECK(cudaFreeAsync(data, stream));
  }
  CHECK(cudaDeviceSynchronize());
  for (auto& stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaMemPoolTrimTo(pool, 0));
  return ok & EXPECT(usedOf(pool) == 0);
}

// Memory of one pool over the pause: some that both sides have written, some that is freed just before it, and some whose allocation is
// pending; and memory of a pool that is destroyed.
struct OverPause {
  OverPause(cudaMemAllocationType type, cudaMemLocationType place) : pool(makePool(type, place)), lost(makePool(type, place)) {
    ok = keepsStreamsApart(pool) & usesAgain(pool);
    CHECK(cudaStreamCreate(&stream));
    kept = allocate(pool, stream);
    ofLost = allocate(lost, stream);
    int* freed = allocate(pool, stream);
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < count; ++i) kept[i] = i % 7, freed[i] = 2, ofLost[i] = 5;
    addEach<<<blocks, 256, 0, stream>>>(kept, 10, count);
    addTo<<<blocks, 256, 0, stream>>>(sum, freed, count);
    CHECK(cudaFreeAsync(freed, stream));
    asked = allocate(pool, stream);
    CHECK(cudaMemPoolDestroy(lost));
  }

  bool goesOn() {
    ok &= EXPECT(usedOf(pool) == 2 * count * sizeof(int));
    addEach<<<blocks, 256, 0, stream>>>(kept, 100, count);
    addEach<<<blocks, 256, 0, stream>>>(ofLost, 1, count);
    CHECK(cudaMemsetAsync(asked, 0, count * sizeof(int), stream));
    addTo<<<blocks, 256, 0, stream>>>(sum, kept, count);
    CHECK(cudaStreamSynchronize(stream));
    int expected = 0;
    for (int i = 0; i < count; ++i) expected += i % 7 + 110;
    asked[count - 1] = 8;
    ok &= EXPECT(sumOf(kept) == expected) & EXPECT(sumOf(ofLost) == 6 * count) & EXPECT(sumOf(asked) == 8);
    addTo<<<blocks, 256, 0, stream>>>(sum, asked, count);
    for (int* each : {kept, asked, ofLost}) CHECK(cudaFreeAsync(each, stream));
    CHECK(cudaStreamSynchronize(stream));
    ok &= same("sum on the device", sum.download(), {2 * count + expected + 8}) & keepsStreamsApart(pool) & usesAgain(pool);
    CHECK(cudaMemPoolDestroy(pool));
    return ok;
  }

  cudaMemPool_t pool, lost;
  cudaStream_t stream = nullptr;
  DeviceArray<int> sum{std::vector<int>{0}};
  int *kept, *asked, *ofLost;
  bool ok;
};

}  // namespace

int main() {
  loadKernel(addEach);
  loadKernel(addTo);
  OverPause host(cudaMemAllocationTypePinned, cudaMemLocationTypeHost);
  OverPause node(cudaMemAllocationTypePinned, cudaMemLocationTypeHostNuma);
  OverPause managed(cudaMemAllocationTypeManaged, cudaMemLocationTypeNone);
  OverPause onDevice(cudaMemAllocationTypeManaged, cudaMemLocationTypeDevice);
  cudaMemLocation place{};
  place.type = cudaMemLocationTypeHost;
  cudaMemPool_t current, first;
  CHECK(cudaMemGetDefaultMemPool(&first, &place, cudaMemAllocationTypePinned));
  CHECK(cudaMemSetMemPool(&place, cudaMemAllocationTypePinned, host.pool));
  pausePoint();
  CHECK(cudaMemGetMemPool(&current, &place, cudaMemAllocationTypePinned));
  bool ok = EXPECT(current == host.pool) & host.goesOn() & node.goesOn() & managed.goesOn() & onDevice.goesOn();
  CHECK(cudaMemSetMemPool(&place, cudaMemAllocationTypePinned, first));
  return verdict("host-pools", ok);
}
