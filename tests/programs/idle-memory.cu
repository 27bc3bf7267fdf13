// Allocates and frees large memory in a loop: the session keeps the memory that the next iteration needs, and no longer than that
// (control/idle-memory checks). At the first pause point the memory is allocated, at the second it is freed, at the third other memory is
// freed in a stream, at the fourth managed memory is: each behind work, and nothing is allocated afterwards.
//
// With the argument `little`, at the only pause point a little memory is freed in a stream, and no thread has waited for it: a suspend does
// not save its bytes.
//
// With another argument, at the only pause point pinned memory of a pool is freed in a stream. The stream is held until the file that the
// argument names exists; memory freed before that is returned after it.
#include <string.h>

#include <chrono>

#include "host-pool.h"

constexpr size_t bytes = size_t{512} << 20, little = size_t{8} << 20;

namespace {

void CUDART_CB awaitFile(void* path) {
  while (access(static_cast<const char*>(path), F_OK) != 0) usleep(1000);
}

int freePinned(char* go) {
  const cudaMemPool_t pool = makePool(cudaMemAllocationTypePinned, cudaMemLocationTypeHost);
  char* memory;
  CHECK(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&memory), bytes, pool, nullptr));
  CHECK(cudaMemsetAsync(memory, 1, 1000, nullptr));
  CHECK(cudaFreeAsync(memory, nullptr));
  CHECK(cudaStreamSynchronize(nullptr));
  CHECK(cudaLaunchHostFunc(nullptr, awaitFile, go));
  pausePoint();
  CHECK(cudaDeviceSynchronize());
  return verdict("idle-memory", true);
}

int freeLittle() {
  char* memory;
  CHECK(cudaMallocAsync(reinterpret_cast<void**>(&memory), little, nullptr));
  CHECK(cudaMemsetAsync(memory, 1, little, nullptr));
  CHECK(cudaFreeAsync(memory, nullptr));
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  CHECK(cudaMallocAsync(reinterpret_cast<void**>(&memory), little, nullptr));
  CHECK(cudaMemsetAsync(memory, 2, little, nullptr));
  char last = 0;
  CHECK(cudaMemcpy(&last, memory + little - 1, 1, cudaMemcpyDefault));
  return verdict("idle-memory", last == 2);
}

// Allocates two pieces of the same size in each of four rounds; those of the last stay allocated. The event is created in the second round.
// Starts again if it took so long that the session may have returned memory freed between rounds.
cudaEvent_t keepsAllocating(char*& first, char*& second) {
  using Clock = std::chrono::steady_clock;
  for (int times = 1;; ++times) {
    const auto begun = Clock::now();
    cudaEvent_t between = nullptr;
    for (int round = 0; round < 4; ++round) {
      if (round > 0) {
        CHECK(cudaFree(first));
        CHECK(cudaFree(second));
        if (!between) CHECK(cudaEventCreate(&between));
      }
      CHECK(cudaMalloc(&first, bytes));
      CHECK(cudaMalloc(&second, bytes));
      CHECK(cudaMemset(first, round, 1000));
    }
    if (Clock::now() - begun < std::chrono::milliseconds(400) || times == 50) return between;
    CHECK(cudaFree(first));
    CHECK(cudaFree(second));
    CHECK(cudaEventDestroy(between));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && strcmp(arguments[1], "little") == 0) return freeLittle();
  if (count > 1) return freePinned(arguments[1]);
  char *first, *second;
  const cudaEvent_t between = keepsAllocating(first, second);
  pausePoint();
  CHECK(cudaFree(first));
  CHECK(cudaFree(second));
  CHECK(cudaEventDestroy(between));
  pausePoint();
  for (char** memory : {&first, &second}) CHECK(cudaMallocAsync(memory, bytes, nullptr));
  for (char* memory : {first, second}) {
    CHECK(cudaMemsetAsync(memory, 1, 1000, nullptr));
    CHECK(cudaFreeAsync(memory, nullptr));
  }
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  CHECK(cudaMallocManaged(&first, bytes));
  CHECK(cudaMemset(first, 1, 1000));
  CHECK(cudaFree(first));
  pausePoint();
  return verdict("idle-memory", true);
}
