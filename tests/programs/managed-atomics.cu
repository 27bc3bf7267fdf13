// Host and device change the same words of managed memory at the same time with system-wide atomics: no addition is lost. Each side sees
// the other's plain writes after synchronization.
#include <thread>

#include "managed.h"

__global__ void addToAll(unsigned* words, int words_count, int rounds) {
  for (int i = 0; i < rounds; ++i)
    for (int word = 0; word < words_count; ++word) atomicAdd_system(&words[word], 1u);
}

__global__ void increment(int* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) ++data[i];
}

namespace {

constexpr int words = 4, blocks = 16, threads = 32, rounds = 200;

// A word that host and kernel add to concurrently.
bool losesNoAddition(unsigned* managed) {
  for (int i = 0; i < words; ++i) managed[i] = 0;
  addToAll<<<blocks, threads>>>(managed, words, rounds);
  unsigned added = 0;
  // At least as often as one thread of the kernel, and as long as the kernel runs.
  do {
    for (int i = 0; i < words; ++i) __atomic_fetch_add(&managed[i], 1u, __ATOMIC_SEQ_CST);
    ++added;
  } while (added < 100000 || cudaStreamQuery(nullptr) == cudaErrorNotReady);
  CHECK(cudaDeviceSynchronize());
  bool ok = true;
  for (int i = 0; i < words; ++i)
    if (managed[i] != added + blocks * threads * rounds) {
      std::fprintf(stderr, "word %d: %u after %d additions of the device and %u of the host\n", i, managed[i],
                   blocks * threads * rounds, added);
      ok = false;
    }
  return ok;
}

bool holds(const int* data, int count, int more) {
  for (int i = 0; i < count; ++i)
    if (data[i] != i + more) {
      std::fprintf(stderr, "data[%d] is %d, expected %d\n", i, data[i], i + more);
      return false;
    }
  return true;
}

bool seesPlainWrites() {
  constexpr int count = 100 * 1000;
  int* data = nullptr;
  CHECK(cudaMallocManaged(&data, count * sizeof(int)));
  for (int i = 0; i < count; ++i) data[i] = i;
  bool ok = true;
  for (int round = 1; round <= 20; round += 2) {
    increment<<<(count + 255) / 256, 256>>>(data, count);
    CHECK(cudaDeviceSynchronize());
    ok &= holds(data, count, round);
    for (int i = 0; i < count; ++i) ++data[i];
  }
  CHECK(cudaFree(data));
  return ok;
}

}  // namespace

int main() {
  if (!isConcurrent()) return notHere;
  unsigned* managed = nullptr;
  CHECK(cudaMallocManaged(&managed, words * sizeof(unsigned)));
  bool ok = losesNoAddition(managed) & seesPlainWrites();
  pausePoint();
  ok &= losesNoAddition(managed) & seesPlainWrites();
  CHECK(cudaFree(managed));
  return verdict("managed-atomics", ok);
}
