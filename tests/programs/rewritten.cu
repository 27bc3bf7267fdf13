// Rewrites all of its device memory between two pause points: everything copied at the first one is outdated at the second.
#include "program.h"

constexpr size_t words = size_t{20} << 20;  // more than the pinned memory for changes at the end of a migration

__device__ uint32_t wordOf(size_t index, uint32_t version) { return static_cast<uint32_t>(index + version) * 2654435761u; }

__global__ void write(uint32_t* memory, uint32_t version) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) memory[i] = wordOf(i, version);
}

__global__ void countWrong(const uint32_t* memory, uint32_t version, unsigned* wrong) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    if (memory[i] != wordOf(i, version)) atomicAdd(wrong, 1u);
}

int main() {
  DeviceArray<uint32_t> memory(words);
  DeviceArray<unsigned> wrong(std::vector<unsigned>{0});
  write<<<64, 256>>>(memory, 1);
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  write<<<64, 256>>>(memory, 2);
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  countWrong<<<64, 256>>>(memory, 2, wrong);
  return verdict("rewritten", EXPECT(wrong.download()[0] == 0));
}
