// A kernel that writes to an unmapped address. The next call that synchronizes returns the fault, and so does every later call: the context
// is lost, the process is not. Reading the thread's last error clears the last error, but not the fault.
#include "program.h"

__global__ void storeAt(int* address) { *address = 1; }

int main() {
  static DeviceArray<int>* lost = new DeviceArray<int>(1);  // never freed, because later calls fail
  storeAt<<<1, 1>>>(*lost);
  CHECK(cudaDeviceSynchronize());

  storeAt<<<1, 1>>>(reinterpret_cast<int*>(uintptr_t(0x7000000000000)));
  bool ok = EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress) &
            EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress) &
            EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorIllegalAddress) &
            EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress) & EXPECT_ERROR(cudaGetLastError(), cudaSuccess);

  int* fresh = nullptr;
  int value = 0;
  ok &= EXPECT_ERROR(cudaMalloc(&fresh, sizeof(int)), cudaErrorIllegalAddress) &
        EXPECT_ERROR(cudaMemcpy(&value, *lost, sizeof(int), cudaMemcpyDeviceToHost), cudaErrorIllegalAddress) &
        EXPECT_ERROR(cudaStreamSynchronize(nullptr), cudaErrorIllegalAddress) &
        EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  storeAt<<<1, 1>>>(*lost);
  ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  return verdict("fault", ok);
}
