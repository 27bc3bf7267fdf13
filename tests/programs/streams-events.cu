// Two streams that pass work to each other: asynchronous copies of pinned memory, events across streams, queries and timings, a host
// function in stream order, and a default stream that waits for the others.
#include <chrono>

#include "program.h"

constexpr int count = 1 << 16, block = 256, blocks = count / block, rounds = 8;

__global__ void scale(int* values, int factor) { values[blockIdx.x * block + threadIdx.x] *= factor; }
__global__ void addTo(int* sums, const int* values) {
  const int i = blockIdx.x * block + threadIdx.x;
  sums[i] += values[i];
}

// Polls until done; any result except success and "not ready" is an error.
template <typename Query>
void pollUntilDone(Query query) {
  cudaError_t answer;
  while ((answer = query()) == cudaErrorNotReady) usleep(100);
  CHECK(answer);
}

void CUDART_CB noteDone(void* done) { *static_cast<std::atomic<int>*>(done) += 1; }

// When work behind an event in another stream is complete, so is the event, however it is queried.
bool isDoneBefore(cudaStream_t first, cudaStream_t second) {
  cudaEvent_t before, behind;
  CHECK(cudaEventCreate(&before));
  CHECK(cudaEventCreate(&behind));
  bool ok = true;
  for (int i = 0; i < 2000 && ok; ++i) {
    CHECK(cudaEventRecord(before, first));
    CHECK(cudaStreamWaitEvent(second, before, 0));
    CHECK(cudaEventRecord(behind, second));
    CHECK(cudaEventSynchronize(behind));
    float milliseconds;
    ok &= i % 2 == 0 ? EXPECT_ERROR(cudaEventQuery(before), cudaSuccess)
                     : EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, before, behind), cudaSuccess);
  }
  CHECK(cudaEventDestroy(before));
  CHECK(cudaEventDestroy(behind));
  return ok;
}

int main() {
  int *input, *output;
  CHECK(cudaMallocHost(&input, count * sizeof(int)));
  CHECK(cudaHostAlloc(&output, count * sizeof(int), cudaHostAllocDefault));
  cudaStream_t producer, consumer;
  CHECK(cudaStreamCreate(&producer));
  CHECK(cudaStreamCreateWithPriority(&consumer, cudaStreamNonBlocking, 0));
  cudaEvent_t start, end, produced, consumed;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventCreateWithFlags(&produced, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&consumed, cudaEventDisableTiming));
  bool ok = EXPECT_ERROR(cudaEventQuery(produced), cudaSuccess) & EXPECT_ERROR(cudaStreamQuery(producer), cudaSuccess);

  DeviceArray<int> values(count), sums(count);
  CHECK(cudaMemsetAsync(sums, 0, count * sizeof(int), consumer));
  CHECK(cudaEventRecord(consumed, consumer));
  std::vector<int> expected(count);
  std::atomic<int> done{0};
  const auto before = std::chrono::steady_clock::now();
  CHECK(cudaEventRecord(start, producer));
  for (int round = 0; round < rounds; ++round) {
    // The copy reads `input` after this call returns, so the next round may write to it only after the copy.
    for (int i = 0; i < count; ++i) input[i] = i % 1000 + round;
    CHECK(cudaStreamWaitEvent(producer, consumed, 0));
    CHECK(cudaMemcpyAsync(values, input, count * sizeof(int), cudaMemcpyHostToDevice, producer));
    scale<<<blocks, block, 0, producer>>>(values, round + 1);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(produced, producer));
    CHECK(cudaStreamWaitEvent(consumer, produced, 0));
    addTo<<<blocks, block, 0, consumer>>>(sums, values);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(consumed, consumer));
    CHECK(cudaLaunchHostFunc(consumer, noteDone, &done));
    if (round == rounds / 2) pausePoint();  // copy, kernels and host function may still be pending
    CHECK(cudaEventSynchronize(produced));
    for (int i = 0; i < count; ++i) expected[i] += (i % 1000 + round) * (round + 1);
  }
  CHECK(cudaMemcpyAsync(output, sums, count * sizeof(int), cudaMemcpyDeviceToHost, consumer));
  CHECK(cudaEventRecord(end, producer));
  pollUntilDone([&] { return cudaEventQuery(end); });
  pollUntilDone([&] { return cudaStreamQuery(consumer); });
  ok &= same("sums", std::vector<int>(output, output + count), expected) & EXPECT(done == rounds);

  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - before;
  ok &= EXPECT(milliseconds > 0) & EXPECT(milliseconds < passed.count() + 1) &  // independent of how long the worker has waited
        EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, start, produced), cudaErrorInvalidResourceHandle) &
        EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);

  // The default stream and a blocking one wait for each other implicitly.
  CHECK(cudaMemsetAsync(sums, 0, sizeof(int)));
  scale<<<blocks, block, 0, producer>>>(sums, 2);
  CHECK(cudaGetLastError());
  for (int& value : expected) value *= 2;
  expected[0] = 0;
  ok &= same("doubled sums", sums.download(), expected);

  ok &= isDoneBefore(producer, consumer);
  for (cudaEvent_t event : {start, end, produced, consumed}) CHECK(cudaEventDestroy(event));
  for (cudaStream_t stream : {producer, consumer}) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(input));
  CHECK(cudaFreeHost(output));
  return verdict("streams-events", ok);
}
