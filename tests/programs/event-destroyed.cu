// An event that is destroyed before its record has completed: the record still completes, and must not count for an event made later.
#include "await-flag.h"
#include "program.h"

int main() {
  cudaStream_t slow, fast;
  CHECK(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&fast, cudaStreamNonBlocking));
  bool ok = true;
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> go{false};
    cudaEvent_t destroyed, made;
    CHECK(cudaEventCreate(&destroyed));
    CHECK(cudaLaunchHostFunc(slow, awaitFlag, &go));
    CHECK(cudaEventRecord(destroyed, slow));
    CHECK(cudaEventDestroy(destroyed));

    CHECK(cudaEventCreate(&made));
    CHECK(cudaEventRecord(made, fast));
    CHECK(cudaEventSynchronize(made));
    go = true;
    CHECK(cudaStreamSynchronize(slow));
    ok &= EXPECT_ERROR(cudaEventQuery(made), cudaSuccess);
    if (round == 1) pausePoint();
    ok &= EXPECT_ERROR(cudaEventQuery(made), cudaSuccess);
    CHECK(cudaEventDestroy(made));
  }
  return verdict("event-destroyed", ok);
}
