// A device is given access to another's memory before anything is on the other one, and keeps it: at the pause the other device's ring
// is open and has had no frame. Not here if there are no two such devices.
#include "peer-devices.h"

__global__ void set(unsigned* to, unsigned value) { *to = value; }

namespace {

bool writesAcross() {
  CHECK(cudaSetDevice(1));
  unsigned* memory;
  CHECK(cudaMalloc(&memory, sizeof *memory));
  CHECK(cudaSetDevice(0));
  set<<<1, 1>>>(memory, 42);
  CHECK(cudaDeviceSynchronize());
  unsigned seen = 0;
  CHECK(cudaMemcpy(&seen, memory, sizeof seen, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(memory));
  return EXPECT(seen == 42);
}

}  // namespace

int main() {
  if (!devicesReachEachOther()) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // emulated devices do
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0));
  pausePoint();
  bool ok = EXPECT_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  return verdict("peers-unused", ok & writesAcross());
}
