// __managed__ variables: one address on both sides. The host writes them before any kernel has run, a kernel reads them and writes, and the
// host reads the result, repeatedly.
#include "managed.h"

__managed__ int counter = 7;
__managed__ float table[1000];
__managed__ float* place;  // a pointer to the other variable: valid on both sides

__global__ void addCounter(float* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1000) sums[i] += table[i] + counter;
}

__global__ void doubleAll() {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1000) place[i] *= 2;
  if (i == 0) ++counter;
}

namespace {

constexpr int count = 1000;

bool holds(float factor) {
  for (int i = 0; i < count; ++i)
    if (table[i] != factor * i) {
      std::fprintf(stderr, "table[%d] is %g, expected %g\n", i, table[i], factor * i);
      return false;
    }
  return true;
}

void doubleOnDevice() {
  doubleAll<<<4, 256>>>();
  CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  if (!isConcurrent()) return notHere;
  bool ok = EXPECT(counter == 7) & EXPECT(table[count - 1] == 0);
  counter = 10;
  place = table;
  for (int i = 0; i < count; ++i) table[i] = static_cast<float>(i);

  DeviceArray<float> sums(std::vector<float>(count, 0));
  addCounter<<<4, 256>>>(sums);
  std::vector<float> got = sums.download(), want(count);
  for (int i = 0; i < count; ++i) want[i] = static_cast<float>(i + 10);
  ok &= same("sums", got, want);

  doubleOnDevice();
  ok &= EXPECT(counter == 11) & holds(2);
  pausePoint();
  ok &= EXPECT(counter == 11) & EXPECT(place == table) & holds(2);
  doubleOnDevice();
  ok &= EXPECT(counter == 12) & holds(4);

  // The symbol's address is the same memory.
  void* address = nullptr;
  CHECK(cudaGetSymbolAddress(&address, counter));
  int copied = 0;
  CHECK(cudaMemcpyFromSymbol(&copied, counter, sizeof copied));
  ok &= EXPECT(address == &counter) & EXPECT(copied == 12);
  return verdict("managed-variables", ok);
}
