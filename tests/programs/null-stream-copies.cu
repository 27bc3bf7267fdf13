// A copy in the null stream between two devices' memories begins after the earlier work of both devices, and later work of both begins
// after the copy: for every entry that copies, in one and two dimensions. Not applicable without two such devices.
#include "peer-devices.h"

// Slow enough that work that does not wait for it comes before it.
__global__ void setLate(unsigned* to, unsigned value) {
  volatile unsigned spent = 0;
  for (int i = 0; i < 20000; ++i) spent += i;
  *to = value + (spent == 1);
}

namespace {

struct Copy {
  const char* name;
  void (*make)(unsigned* to, unsigned* from);  // copies from device 0 to device 1, the thread's current device
};

const Copy copies[] = {
    {"cudaMemcpy", [](unsigned* to, unsigned* from) { CHECK(cudaMemcpy(to, from, sizeof *to, cudaMemcpyDefault)); }},
    {"cudaMemcpyAsync", [](unsigned* to, unsigned* from) { CHECK(cudaMemcpyAsync(to, from, sizeof *to, cudaMemcpyDeviceToDevice, 0)); }},
    {"cudaMemcpyPeer", [](unsigned* to, unsigned* from) { CHECK(cudaMemcpyPeer(to, 1, from, 0, sizeof *to)); }},
    {"cudaMemcpyPeerAsync", [](unsigned* to, unsigned* from) { CHECK(cudaMemcpyPeerAsync(to, 1, from, 0, sizeof *to, 0)); }},
    {"cudaMemcpy2DAsync", [](unsigned* to, unsigned* from) { CHECK(cudaMemcpy2DAsync(to, 8, from, 8, 4, 1, cudaMemcpyDefault, 0)); }},
};

unsigned read(const unsigned* from) {
  unsigned value = 0;
  CHECK(cudaMemcpy(&value, from, sizeof value, cudaMemcpyDefault));
  return value;
}

bool copiesInOrder(unsigned* first, unsigned* second) {
  static unsigned value = 0;
  bool ok = true;
  for (const Copy& copy : copies) {
    // Behind the present work of the source's device.
    CHECK(cudaSetDevice(0));
    setLate<<<1, 1>>>(first, ++value);
    CHECK(cudaSetDevice(1));
    copy.make(second, first);
    ok &= EXPECT(read(second) == value);
    // Before later work of the source's device, while the other device is busy.
    setLate<<<1, 1>>>(second, 0);
    copy.make(second, first);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemsetAsync(first, 0, sizeof *first));
    CHECK(cudaSetDevice(1));
    ok &= EXPECT(read(second) == value);
    if (!ok) return std::fprintf(stderr, "null-stream-copies: %s\n", copy.name), false;
  }
  return ok;
}

}  // namespace

int main() {
  if (!devicesReachEachOther()) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // emulated devices are peers
  unsigned *first, *second;
  CHECK(cudaSetDevice(0));
  CHECK(cudaMalloc(&first, sizeof *first));
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&second, sizeof *second));
  bool ok = copiesInOrder(first, second);
  pausePoint();
  ok &= copiesInOrder(first, second);
  return verdict("null-stream-copies", ok);
}
