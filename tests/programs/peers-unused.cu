// A device gets access to another device's memory before the other one is used, and keeps it: at the pause the other device's ring is open
// and has had no frame. Not applicable without two such devices.
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
  if (!devicesReachEachOther()) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // emulated devices are peers
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0));
  pausePoint();
  bool ok = EXPECT_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  return verdict("peers-unused", ok & writesAcross());
}
