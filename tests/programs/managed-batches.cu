// Managed memory that is prefetched and discarded in batches.
#include "managed.h"

__global__ void add(unsigned* data, unsigned value) { data[threadIdx.x] += value; }

namespace {

// Each allocation has its own pages: the last prefetch location is stored per page.
constexpr unsigned count = 256, ranges = 3;
constexpr size_t bytes = 2 << 20;
constexpr cudaMemLocation device{cudaMemLocationTypeDevice, 0}, host{cudaMemLocationTypeHost, 0};

cudaMemLocationType lastLocation(void* memory) {
  int type = -1;
  CHECK(cudaMemRangeGetAttribute(&type, sizeof type, cudaMemRangeAttributeLastPrefetchLocationType, memory, bytes));
  return static_cast<cudaMemLocationType>(type);
}

// Three operations with the locations device, host and device. The driver only looks for the next location, and only behind the first
// operation: a location whose index has passed is never used.
bool prefetches(void** memory, size_t* sizes, cudaStream_t stream) {
  struct Case {
    size_t firsts[ranges], locations;
    const char* lies;  // the location of each operation's memory: D or H
  };
  Case cases[] = {
      {{0, 2}, 2, "DDH"}, {{0, 0}, 2, "DDD"}, {{0, 1, 1}, 3, "DHH"}, {{0, 2, 1}, 3, "DDH"}, {{0, 1, 2}, 3, "DHD"}};
  bool ok = true;
  for (Case& each : cases) {
    cudaMemLocation places[] = {device, host, device};
    CHECK(cudaMemPrefetchBatchAsync(memory, sizes, ranges, places, each.firsts, each.locations, 0, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (unsigned i = 0; i < ranges; ++i)
      ok &= EXPECT(lastLocation(memory[i]) == (each.lies[i] == 'D' ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost));
  }
  return ok;
}

}  // namespace

int main() {
  if (!isConcurrent()) return notHere;
  void* memory[ranges];
  size_t sizes[ranges] = {bytes, bytes, bytes}, firsts[] = {0, 2}, late[] = {1}, beyond[] = {0, ranges};
  cudaMemLocation places[] = {device, host}, nowhere[] = {{cudaMemLocationTypeDevice, 99}};
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  for (auto& each : memory) CHECK(cudaMallocManaged(&each, bytes));
  for (auto* each : memory)
    for (unsigned i = 0; i < count; ++i) static_cast<unsigned*>(each)[i] = i;
  bool ok = prefetches(memory, sizes, stream);
  for (auto* each : memory) add<<<1, count, 0, stream>>>(static_cast<unsigned*>(each), 1);
  CHECK(cudaStreamSynchronize(stream));
  pausePoint();
  for (auto* each : memory)
    for (unsigned i = 0; i < count; ++i) ok &= static_cast<unsigned*>(each)[i] == i + 1;
  ok &= EXPECT(ok);
  // Discarded memory takes the values that are written next.
  CHECK(cudaMemDiscardBatchAsync(memory, sizes, 2, 0, stream));
  CHECK(cudaMemDiscardAndPrefetchBatchAsync(memory + 2, sizes, 1, places, firsts, 1, 0, stream));
  ok &= EXPECT(lastLocation(memory[2]) == cudaMemLocationTypeDevice);
  for (auto* each : memory) CHECK(cudaMemsetAsync(each, 0, count * sizeof(unsigned), stream));
  for (auto* each : memory) add<<<1, count, 0, stream>>>(static_cast<unsigned*>(each), 7);
  CHECK(cudaStreamSynchronize(stream));
  for (auto* each : memory) ok &= EXPECT(static_cast<unsigned*>(each)[count - 1] == 7);

  // The first index must be 0, and each must be an operation's; there must be a location; flags must be 0; the legacy stream is not
  // allowed.
  void* plain = malloc(bytes);
  cudaStream_t legacy = cudaStreamLegacy;
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, ranges, places, firsts, 0, 0, stream), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, ranges, nullptr, firsts, 1, 0, stream), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaMemPrefetchBatchAsync(memory, sizes, 0, places, firsts, 1, 0, stream), cudaErrorInvalidValue);
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
