// __managed__ variables that several devices use: one memory for all of them and the host, beside a plain variable of which each device has
// its own. They are used by one device first, then by both in turn, over a pause, by one device after the other was reset, and by both
// again; only the plain variable is then reset to its initial value.
#include "program.h"

__managed__ int counter = 7;
__managed__ int table[1000];
__device__ int own = 100;

__global__ void work(int by, int* out) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < 1000) table[i] += by;
  if (i == 0) {
    counter += by;
    own += by;
    *out = own;
  }
}

namespace {

struct Side {
  explicit Side(int device) : device(device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaMalloc(&out, sizeof *out));
  }
  int run(int by) const {
    int value = -1;
    CHECK(cudaSetDevice(device));
    work<<<4, 256>>>(by, out);
    CHECK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  }
  void* addressOf(const int& variable) const {
    void* address = nullptr;
    CHECK(cudaSetDevice(device));
    CHECK(cudaGetSymbolAddress(&address, variable));
    return address;
  }

  const int device;
  int* out = nullptr;
};

bool holds(int value, int ofTable) {
  bool ok = EXPECT(counter == value);
  for (int i : {0, 1, 500, 999}) ok &= EXPECT(table[i] == ofTable + i);
  return ok;
}

}  // namespace

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return notHere;
  Side first(0), second(1);
  bool ok = EXPECT(counter == 7);
  for (int i = 0; i < 1000; ++i) table[i] = i;
  ok &= EXPECT(first.run(1) == 101) & holds(8, 1);
  ok &= EXPECT(second.run(10) == 110);  // it has its own `own`
  ok &= holds(18, 11);
  counter = 20;
  ok &= EXPECT(first.run(2) == 103) & EXPECT(second.run(20) == 130) & holds(42, 33);
  ok &= EXPECT(first.addressOf(counter) == &counter) & EXPECT(second.addressOf(counter) == &counter);
  ok &= EXPECT(first.addressOf(own) != second.addressOf(own));
  const int before = counter;
  pausePoint();
  ok &= EXPECT(counter == before) & holds(42, 33);
  ok &= EXPECT(second.run(100) == 230) & EXPECT(first.run(3) == 106) & holds(145, 136);
  counter = 1;
  int copied = 0;
  CHECK(cudaSetDevice(1));
  CHECK(cudaMemcpyFromSymbol(&copied, counter, sizeof copied));
  ok &= EXPECT(copied == 1) & EXPECT(second.run(4) == 234) & holds(5, 140);
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaDeviceReset());
  ok &= EXPECT(second.run(5) == 239) & holds(10, 145);
  ok &= EXPECT(Side(0).run(6) == 106) & EXPECT(second.run(7) == 246) & holds(23, 158);
  pausePoint();
  ok &= EXPECT(second.run(1) == 247) & holds(24, 159);
  return verdict("managed-shared", ok);
}
