// Variables that live with the module: constant and global, initialized and not, written by the host through their symbols and by kernels
// by name.
#include "program.h"
#include "random-numbers.h"

constexpr int count = 1000;

struct Weights {
  double scale;
  short offset;
  char tag[5];
};

__constant__ Weights initialized = {1.5, -7, {'v', 'g', 'p', 'u', 0}};
__constant__ int fromHost[count];
__device__ int written[count];
__device__ float table[4] = {0.25f, 0.5f, 1, 2};
__device__ unsigned long long launches;
static __device__ const char text[] = "a string in device memory";

__global__ void useAll(double* results, int* letters) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    written[i] += fromHost[i];
    results[i] = written[i] * initialized.scale * table[i % 4] + initialized.offset;
  }
  if (i < int(sizeof text)) letters[i] = text[i];
  if (i == 0) launches += 1;
}

struct Expected {
  std::vector<int> fromHost, written;
  float table[4] = {0.25f, 0.5f, 1, 2};

  std::vector<double> launch() {
    std::vector<double> results(count);
    for (int i = 0; i < count; ++i) {
      written[i] += fromHost[i];
      results[i] = written[i] * 1.5 * table[i % 4] - 7;
    }
    return results;
  }
};

bool launchAgrees(const char* when, Expected& expected) {
  DeviceArray<double> results(count);
  DeviceArray<int> letters(sizeof text);
  useAll<<<blocksFor(count, 128), 128>>>(results, letters);
  CHECK(cudaGetLastError());
  std::vector<int> gotWritten(count);
  CHECK(cudaMemcpyFromSymbol(gotWritten.data(), written, sizeof written));
  static const char want[] = "a string in device memory";
  return same(when, results.download(), expected.launch()) & same("written", gotWritten, expected.written) &
         same("letters", letters.download(), std::vector<int>(want, want + sizeof want));
}

bool symbolsHaveSizes() {
  size_t ofWeights = 0, ofTable = 0;
  void* address = nullptr;
  CHECK(cudaGetSymbolSize(&ofWeights, initialized));
  CHECK(cudaGetSymbolSize(&ofTable, table));
  CHECK(cudaGetSymbolAddress(&address, table));
  float second = 0;
  CHECK(cudaMemcpy(&second, static_cast<float*>(address) + 1, sizeof second, cudaMemcpyDeviceToHost));
  return EXPECT(ofWeights == sizeof(Weights)) & EXPECT(ofTable == sizeof table) & EXPECT(second == 0.5f);
}

int main() {
  Expected expected{randomInts(count, -9, 9, 1), std::vector<int>(count)};
  CHECK(cudaMemcpyToSymbol(fromHost, expected.fromHost.data(), sizeof fromHost));
  bool ok = symbolsHaveSizes() & launchAgrees("first", expected);

  // One element in the middle of each, by an offset; copies in a stream are ordered with the launch after them.
  expected.fromHost[123] = 100000;
  expected.table[2] = 8;
  CHECK(cudaMemcpyToSymbol(fromHost, &expected.fromHost[123], sizeof(int), 123 * sizeof(int)));
  CHECK(cudaMemcpyToSymbolAsync(table, &expected.table[2], sizeof(float), 2 * sizeof(float), cudaMemcpyHostToDevice));
  ok &= launchAgrees("second", expected);
  pausePoint();
  ok &= launchAgrees("after the pause", expected);

  unsigned long long count = 0;
  CHECK(cudaMemcpyFromSymbol(&count, launches, sizeof count));
  return verdict("module-variables", ok & EXPECT(count == 3));
}
