// Managed memory that is prefetched and discarded in batches.
#include "program.h"

__global__ void add(unsigned* data, unsigned value) { data[threadIdx.x] += value; }

namespace {

constexpr unsigned count = 256, ranges = 3;
constexpr size_t bytes = count * sizeof(unsigned);
constexpr cudaMemLocation device{cudaMemLocationTypeDevice, 0}, host{cudaMemLocationTypeHost, 0};

cudaMemLocationType lastLocation(void* memory) {
  int type = -1;
  CHECK(cudaMemRangeGetAttribute(&type, sizeof type, cudaMemRangeAttributeLastPrefetchLocationType, memory, bytes));
  return static_cast<cudaMemLocationType>(type);
}

}  // namespace

int main() {
  int concurrent = 0;
  CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  if (concurrent == 0) return notHere;
  void* memory[ranges];
  size_t sizes[ranges] = {bytes, bytes, bytes}, firsts[] = {0, 2}, backwards[] = {0, 0}, late[] = {1}, beyond[] = {0, ranges};
  cudaMemLocation places[] = {device, host}, nowhere[] = {{cudaMemLocationTypeDevice, 99}};
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  for (auto& each : memory) CHECK(cudaMallocManaged(&each, bytes));
  for (auto* each : memory)
    for (unsigned i = 0; i < count; ++i) static_cast<unsigned*>(each)[i] = i;
  CHECK(cudaMemPrefetchBatchAsync(memory, sizes, ranges, places, firsts, 2, 0, stream));
  bool ok = EXPECT(lastLocation(memory[2]) == cudaMemLocationTypeHost);
  for (int i : {0, 1}) ok &= EXPECT(lastLocation(memory[i]) == cudaMemLocationTypeDevice);
  for (auto* each : memory) add<<<1, count, 0, stream>>>(static_cast<unsigned*>(each), 1);
  CHECK(cudaStreamSynchronize(stream));
  pausePoint();
  for (auto* each : memory)
    for (unsigned i = 0; i < count; ++i) ok &= static_cast<unsigned*>(each)[i] == i + 1;
  ok &= EXPECT(ok);
  // What was discarded is what is written next.
  CHECK(cudaMemDiscardBatchAsync(memory, sizes, 2, 0, stream));
  CHECK(cudaMemDiscardAndPrefetchBatchAsync(memory + 2, sizes, 1, places, firsts, 1, 0, stream));
  ok &= EXPECT(lastLocation(memory[2]) == cudaMemLocationTypeDevice);
  for (auto* each : memory) CHECK(cudaMemsetAsync(each, 0, bytes, stream));
  for (auto* each : memory) add<<<1, count, 0, stream>>>(static_cast<unsigned*>(each), 7);
  CHECK(cudaStreamSynchronize(stream));
  for (auto* each : memory) ok &= EXPECT(static_cast<unsigned*>(each)[count - 1] == 7);

  // cuda.h: the beginnings begin with 0, grow, and lie within the batch; flags are 0; the stream is not the legacy one.
  void* plain = malloc(bytes);
  cudaStream_t legacy = cudaStreamLegacy;
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, ranges, places, backwards, 2, 0, stream), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, ranges, places, late, 1, 0, stream), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, ranges, places, beyond, 2, 0, stream), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, ranges, places, firsts, 2, 1, stream), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, ranges, places, firsts, 2, 0, legacy), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, ranges, nowhere, firsts, 1, 0, stream), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemDiscardBatchAsync(&plain, sizes, 1, 0, stream), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemDiscardBatchAsync(memory, sizes, ranges, 1, stream), cudaErrorInvalidValue);
  free(plain);
  for (auto* each : memory) CHECK(cudaFree(each));
  CHECK(cudaStreamDestroy(stream));
  return verdict("managed-batches", ok);
}
