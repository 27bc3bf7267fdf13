// Sorts pairs of key and value with Batcher's odd-even merge network, one launch per step. The network sorts any number of keys, not only
// powers of two; keys repeat, so equal ones may come in any order, but pairs must stay together and none may be lost.
#include "program.h"
#include "random-numbers.h"

#include <algorithm>

// One step of the network: `merged` is half the length of the merged runs, `stride` the distance of compared keys; both are powers of two.
__global__ void mergeStep(int* keys, int* values, int count, int merged, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = i + stride, start = stride & (merged - 1);
  const bool first = i >= start && ((i - start) & stride) == 0;  // one thread handles each pair
  const bool sameRun = ((i ^ j) & -(2 * merged)) == 0;
  if (j >= count || !first || !sameRun || keys[i] <= keys[j]) return;
  const int key = keys[i], value = values[i];
  keys[i] = keys[j];
  values[i] = values[j];
  keys[j] = key;
  values[j] = value;
}

// Whether each value still is the input position of its key, and no position occurs twice.
bool pairsKept(const std::vector<int>& input, const std::vector<int>& keys, const std::vector<int>& values) {
  std::vector<bool> seen(input.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t place = values[i];
    if (place >= input.size() || seen[place] || input[place] != keys[i]) {
      std::fprintf(stderr, "pair %zu: key %d, value %d is none of the input\n", i, keys[i], values[i]);
      return false;
    }
    seen[place] = true;
  }
  return true;
}

int main() {
  const int count = 9999, block = 128;
  const auto input = randomInts(count, -2000, 2000, 11);
  std::vector<int> places(count);
  for (int i = 0; i < count; ++i) places[i] = i;
  DeviceArray<int> keys(input), values(places);

  for (int merged = 1; merged < count; merged *= 2) {
    if (merged == 1024) pausePoint();
    for (int stride = merged; stride > 0; stride /= 2) {
      mergeStep<<<blocksFor(count, block), block>>>(keys, values, count, merged, stride);
      CHECK(cudaGetLastError());
    }
  }

  auto expected = input;
  std::sort(expected.begin(), expected.end());
  const auto sorted = keys.download();
  return verdict("sort-odd-even", same("keys", sorted, expected) & pairsKept(input, sorted, values.download()));
}
