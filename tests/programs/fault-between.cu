// A kernel that faults in a rapid sequence of launches: the ones before it have run, the ones behind it have not, the next call that waits
// and all later ones return the error, and a reset makes the device usable.
#include "program.h"

namespace {

constexpr int before = 20, behind = 20;

__global__ void count(unsigned* counter) { *static_cast<volatile unsigned*>(counter) += 1; }
__global__ void fail(int* nowhere) { *nowhere = 1; }

}  // namespace

int main() {
  bool ok = true;
  unsigned* counter;  // in pinned memory, which can be read after the device has failed
  cudaEvent_t recorded;
  CHECK(cudaMallocHost(&counter, sizeof *counter));
  CHECK(cudaEventCreate(&recorded));
  *counter = 0;
  count<<<1, 1>>>(counter);
  CHECK(cudaDeviceSynchronize());
  for (int i = 1; i < before; ++i) count<<<1, 1>>>(counter);
  fail<<<1, 1>>>(reinterpret_cast<int*>(0x1000));
  for (int i = 0; i < behind; ++i) count<<<1, 1>>>(counter);
  cudaEventRecord(recorded);
  ok &= EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  ok &= EXPECT_ERROR(cudaStreamSynchronize(nullptr), cudaErrorIllegalAddress);
  ok &= EXPECT_ERROR(cudaEventQuery(recorded), cudaErrorIllegalAddress);
  ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  ok &= EXPECT(*counter == before);
  return verdict("fault-between", ok);
}
