// Fills the device until CUDA refuses the allocation that does not fit, without other errors; freed memory can be allocated again
// completely, any number of times, and in other sizes.
#include <algorithm>

#include "program.h"

__global__ void fill(int* data, int value) { data[threadIdx.x] = value; }

namespace {

// Allocates pieces of `bytes` until there is no room for another.
std::vector<int*> allocateAll(size_t bytes) {
  std::vector<int*> pieces;
  for (int* piece; cudaMalloc(&piece, bytes) == cudaSuccess;) pieces.push_back(piece);
  return pieces;
}

bool works(int* data) {
  std::vector<int> values(256);
  fill<<<1, 256>>>(data, 5);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(values.data(), data, 256 * sizeof(int), cudaMemcpyDeviceToHost));
  return same("written on a full device", values, std::vector<int>(256, 5));
}

// Filling twice gives the same result, whatever the earlier size of the pieces was.
bool fillTwice(size_t bytes, size_t least) {
  size_t before = 0, after = 0, total = 0;
  CHECK(cudaMemGetInfo(&before, &total));
  size_t counts[2];
  bool ok = true;
  for (size_t& count : counts) {
    const std::vector<int*> pieces = allocateAll(bytes);
    count = pieces.size();
    ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation) & EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
    ok &= !pieces.empty() && works(pieces.front()) && works(pieces.back());
    for (int* piece : pieces) CHECK(cudaFree(piece));
  }
  CHECK(cudaMemGetInfo(&after, &total));
  // Other programs and waiting workers change the free memory a little meanwhile; a leaked piece would exceed that.
  std::printf("pieces of %zu KiB: %zu, then %zu; free before %zu KiB, after %zu KiB\n", bytes >> 10, counts[0],
              counts[1], before >> 10, after >> 10);
  return ok & EXPECT(counts[0] >= least) & EXPECT(counts[1] == counts[0]) & EXPECT(after + bytes / 2 >= before);
}

// Freed memory can also be used for an array, which the driver places.
bool fillWithArray(size_t bytes) {
  const cudaChannelFormatDesc texels = cudaCreateChannelDesc<float4>();
  constexpr size_t width = 65536, rowBytes = width * sizeof(float4), mostRows = 65536;
  cudaArray_t array = nullptr;
  for (int* piece : allocateAll(bytes)) CHECK(cudaFree(piece));
  bool ok = EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
  for (const size_t part : {2 * bytes, 5 * bytes / 2}) {
    ok &= EXPECT(cudaMallocArray(&array, &texels, width, std::min(part / rowBytes, mostRows)) == cudaSuccess);
    if (array != nullptr) CHECK(cudaFreeArray(array));
    array = nullptr;
    int* memory = nullptr;
    CHECK(cudaMallocAsync(&memory, part, nullptr));
    CHECK(cudaFreeAsync(memory, nullptr));
    CHECK(cudaStreamSynchronize(nullptr));
  }
  return ok;
}

}  // namespace

int main() {
  DeviceArray<int> kept(256);
  bool ok = works(kept);  // a kernel is loaded at its first use, which needs memory
  size_t available = 0, total = 0;
  CHECK(cudaMemGetInfo(&available, &total));
  const size_t unit = 2 << 20, tenth = available / 10 / unit * unit;
  ok &= fillTwice(tenth, 9);
  pausePoint();
  ok &= works(kept);  // a new device loads it again
  ok &= fillTwice(tenth - unit / 2, 9) & fillTwice(3 * tenth, 3) & fillWithArray(3 * tenth);

  void* memory = nullptr;
  ok &= EXPECT_ERROR(cudaMalloc(&memory, 2 * total), cudaErrorMemoryAllocation) &
        EXPECT_ERROR(cudaMalloc(&memory, size_t(1) << 45), cudaErrorMemoryAllocation) &
        EXPECT_ERROR(cudaMallocHost(&memory, size_t(1) << 48), cudaErrorMemoryAllocation) &
        EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation) & works(kept);
  return verdict("device-full", ok);
}
