// Adds two vectors of `argv[1]` elements (default 50,000), twice.
#include "bench.h"
#include "random-numbers.h"

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

// GVirtuS's first benchmark, in its SDK sample's size.
int measure(const Bench& bench) {
  const int count = bench.size(50000, 5000), block = 256;
  const auto hostA = randomFloats(count, -100, 100, 1), hostB = randomFloats(count, -100, 100, 2);
  DeviceArray<float> a(count), b(count), sum(count);
  std::vector<float> result(count);
  bench.steady(1000, [&] {
    a.copyIn(hostA);
    b.copyIn(hostB);
    add<<<blocksFor(count, block), block>>>(a, b, sum, count);
    CHECK(cudaGetLastError());
    sum.copyOut(result);
  });
  return bench.digest(result);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);
  const int count = argc > 1 ? std::atoi(argv[1]) : 50000;
  if (count < 1) {
    std::fprintf(stderr, "usage: vector-add [COUNT], a count of at least 1\n");
    return 2;
  }
  const auto hostA = randomFloats(count, -100, 100, 1), hostB = randomFloats(count, -100, 100, 2);
  DeviceArray<float> a(hostA), b(hostB), first(count), second(count);

  const int block = 256;
  add<<<blocksFor(count, block), block>>>(a, b, first, count);
  CHECK(cudaGetLastError());
  pausePoint();
  add<<<blocksFor(count, block), block>>>(first, b, second, count);
  CHECK(cudaGetLastError());

  std::vector<float> expectedFirst(count), expectedSecond(count);
  for (int i = 0; i < count; ++i) {
    expectedFirst[i] = hostA[i] + hostB[i];
    expectedSecond[i] = expectedFirst[i] + hostB[i];
  }
  const bool ok = same("a+b", first.download(), expectedFirst) & same("a+b+b", second.download(), expectedSecond);
  return verdict("vector-add", ok);
}
