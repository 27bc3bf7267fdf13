// Arrays that are freed behind a stream which a host function blocks. Only a later call of another thread unblocks it, and the
// memory can be allocated again after the frees.
#include <atomic>
#include <thread>

#include "program.h"
#include "random-numbers.h"

std::atomic<bool> reached, released;

void hold(void*) {
  reached = true;
  while (!released) usleep(100);
}

__global__ void add(int* sum, int value) { atomicAdd(sum, value); }

int main() {
  alarm(60);
  loadKernel(add);
  constexpr size_t width = 1024, height = 256, largeWidth = 8192, largeHeight = 5120;
  constexpr cudaExtent extent{width, height, 0};
  const std::vector<float> values = randomFloats(width * height, 0, 1, 5);
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  DeviceArray<int> sum(std::vector<int>{0});
  DeviceArray<float> copied(values.size());
  cudaStream_t held, other;
  CHECK(cudaStreamCreate(&held));
  CHECK(cudaStreamCreate(&other));
  bool ok = true;
  for (int round = 0; round < 2; ++round) {
    cudaArray_t array, large;
    cudaMipmappedArray_t mipmap;
    reached = released = false;
    CHECK(cudaMallocArray(&array, &floats, width, height));
    CHECK(cudaMallocMipmappedArray(&mipmap, &floats, extent, 4));
    CHECK(cudaMallocArray(&large, &floats, largeWidth, largeHeight));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, values.data(), width * sizeof(float), width * sizeof(float), height,
                              cudaMemcpyHostToDevice));
    CHECK(cudaMemset(copied, 0, values.size() * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaLaunchHostFunc(held, hold, nullptr));
    CHECK(cudaMemcpy2DFromArrayAsync(copied, width * sizeof(float), array, 0, 0, width * sizeof(float), height,
                                     cudaMemcpyDeviceToDevice, held));
    while (!reached) usleep(100);

    std::thread freeing([&] {
      CHECK(cudaFreeArray(array));
      CHECK(cudaFreeMipmappedArray(mipmap));
      CHECK(cudaFreeArray(large));
      CHECK(cudaMallocArray(&large, &floats, largeWidth, largeHeight));  // a small device has room for one of this size
      CHECK(cudaFreeArray(large));
    });
    usleep(20'000);
    add<<<1, 1, 0, other>>>(sum, 1);
    CHECK(cudaStreamSynchronize(other));
    released = true;
    freeing.join();
    CHECK(cudaStreamSynchronize(held));
    ok &= same("copied from the freed array", copied.download(), values) && same("sum", sum.download(), {round + 1});
    if (round == 0) pausePoint();
  }
  CHECK(cudaStreamDestroy(held));
  CHECK(cudaStreamDestroy(other));
  return verdict("held-frees", ok);
}
