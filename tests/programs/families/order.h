// Ordering of work between several streams and the host.
#pragma once

#include <atomic>

#include "place.h"

namespace families {

inline bool events(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  const Place other(static_cast<int>(place.seed), 1);
  cudaEvent_t written, added;
  CHECK(cudaEventCreate(&written));
  CHECK(cudaEventCreate(&added));
  place.write(data, place.numbers());
  CHECK(cudaEventRecord(written, place.stream));
  CHECK(cudaStreamWaitEvent(other.stream, written, 0));
  place.add(data, 4, other.stream);
  CHECK(cudaEventRecord(added, other.stream));
  CHECK(cudaEventSynchronize(added));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, written, added));
  bool ok = EXPECT(cudaEventQuery(added) == cudaSuccess) & EXPECT(milliseconds >= 0) & place.holds("events", data, 4);
  CHECK(cudaEventDestroy(written));
  CHECK(cudaEventDestroy(added));
  return ok;
}

// Words that one stream writes and another waits for. The write is issued first: streams may share a queue of a real GPU, in which a wait
// before its write would block it for ever.
inline bool words(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  DeviceArray<uint64_t> word(2);
  const Place other(static_cast<int>(place.seed), 3);
  const auto at = reinterpret_cast<CUdeviceptr>(static_cast<uint64_t*>(word));
  CHECK(cudaMemsetAsync(word, 0, 2 * sizeof(uint64_t), place.stream));
  place.write(data, place.numbers());
  CUstreamBatchMemOpParams both[2]{};
  both[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  both[0].writeValue.address = at;
  both[0].writeValue.value = place.seed;
  both[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  both[1].waitValue.address = at;
  both[1].waitValue.value = place.seed;
  both[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  CALL(cuStreamBatchMemOp, place.stream, 2, both, 0);
  CALL(cuStreamWaitValue32, other.stream, at, place.seed, CU_STREAM_WAIT_VALUE_EQ);
  place.add(data, 5, other.stream);
  const uint64_t wide = uint64_t{place.seed} << 20 | 1;
  CALL(cuStreamWriteValue64, other.stream, at + sizeof(uint64_t), wide, 0);
  CALL(cuStreamWaitValue64, place.stream, at + sizeof(uint64_t), wide, CU_STREAM_WAIT_VALUE_GEQ);
  place.add(data, 6);
  return place.holds("words", data, 5 + 6) & EXPECT(cudaStreamQuery(other.stream) == cudaSuccess);
}

inline uint64_t sumOf(const Numbers& values) {
  uint64_t sum = 0;
  for (uint32_t value : values) sum += value;
  return sum;
}

// The thread's numbers: the device adds to them and copies them to the host, which sums them in the stream.
struct Sum {
  Sum(const Place& place, uint32_t more) : data(place.count()), given(place.numbers()), found(place.count()) {
    place.write(data, given);
    place.add(data, more);
    CHECK(cudaMemcpyAsync(found.data(), data, place.bytes(), cudaMemcpyDeviceToHost, place.stream));
  }
  void take() { value += sumOf(found); }

  DeviceArray<uint32_t> data;
  const Numbers given;
  Numbers found;
  uint64_t value = 0;
};

inline bool hostFunctions(const Place& place) {
  Sum sum(place, 5);
  CHECK(cudaLaunchHostFunc(place.stream, [](void* to) { static_cast<Sum*>(to)->take(); }, &sum));
  place.wait();
  return EXPECT(sum.value == sumOf(place.numbers(5)));
}

// A callback, with work before it and a host function behind it. Neither reads pinned memory, because on a node that does not share it a
// read waits for the GPU's work (docs/remote.md).
inline bool callbacks(const Place& place) {
  Sum sum(place, 8);
  CHECK(cudaStreamAddCallback(
      place.stream, [](cudaStream_t, cudaError_t status, void* to) { if (status == cudaSuccess) static_cast<Sum*>(to)->take(); }, &sum, 0));
  CHECK(cudaLaunchHostFunc(place.stream, [](void* to) { static_cast<Sum*>(to)->value *= 3; }, &sum));
  place.wait();
  return EXPECT(sum.value == 3 * sumOf(place.numbers(8)));
}

// The thread's per-thread default stream, and a stream with a priority.
inline bool threadStreams(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  int least = 0, greatest = 0, priority = 77;
  cudaStream_t first;
  cudaEvent_t added;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(cudaStreamCreateWithPriority(&first, cudaStreamNonBlocking, greatest));
  CHECK(cudaStreamGetPriority(first, &priority));
  CHECK(cudaEventCreateWithFlags(&added, cudaEventDisableTiming));
  place.write(data, place.numbers());
  place.wait();
  place.add(data, 7, cudaStreamPerThread);
  CHECK(cudaEventRecord(added, cudaStreamPerThread));
  CHECK(cudaStreamWaitEvent(first, added, 0));
  place.add(data, 8, first);
  CHECK(cudaStreamSynchronize(first));
  const bool ok = EXPECT(priority == greatest) & EXPECT(cudaStreamQuery(cudaStreamPerThread) == cudaSuccess) &
                  place.holds("streams of a thread", data, 7 + 8);
  CHECK(cudaStreamDestroy(first));
  CHECK(cudaEventDestroy(added));
  return ok;
}

}  // namespace families
