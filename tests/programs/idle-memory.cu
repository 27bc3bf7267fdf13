// Allocates large memory in a loop and frees it again: the session keeps what the next round needs, and no longer than that
// (control/idle-memory looks). The first pause point holds the memory, the second has freed it, the third has freed other memory in a
// stream, the fourth managed memory: each of them behind work, and with nothing allocated afterwards.
#include "program.h"

constexpr size_t bytes = size_t{512} << 20;

int main() {
  cudaEvent_t between = nullptr;
  char *first, *second;
  for (int round = 0; round < 4; ++round) {
    CHECK(cudaMalloc(&first, bytes));
    CHECK(cudaMalloc(&second, bytes));
    CHECK(cudaMemset(first, round, 1000));
    if (round == 3) pausePoint();
    CHECK(cudaFree(first));
    CHECK(cudaFree(second));
    if (!between) CHECK(cudaEventCreate(&between));
  }
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
