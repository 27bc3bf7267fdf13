// Arrays that are freed while a host function holds work: behind the held work, which only a later call of another thread releases, and
// before it, behind work that ends by itself. Other work proceeds meanwhile, and the memory can be allocated again after the frees.
#include <atomic>
#include <thread>

#include "program.h"
#include "random-numbers.h"

__global__ void add(int* sum, int value) { atomicAdd(sum, value); }

namespace {

constexpr size_t width = 1024, height = 256, largeWidth = 8192, largeHeight = 5120;
const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();

std::atomic<bool> reached, released, isOver;

void hold(void*) {
  reached = true;
  while (!released) usleep(100);
}

void runShortly(void*) {
  usleep(100'000);
  isOver = true;
}

class Work {
 public:
  Work() {
    for (cudaStream_t* stream : {&held, &brief, &other}) CHECK(cudaStreamCreate(stream));
  }
  ~Work() {
    for (cudaStream_t stream : {held, brief, other}) CHECK(cudaStreamDestroy(stream));
  }

  // The large array and the copy's source are freed while the copy is held.
  bool freesBehindHeldWork() {
    cudaArray_t large;
    CHECK(cudaMallocArray(&large, &floats, largeWidth, largeHeight));
    allocate();
    CHECK(cudaMemset(copied, 0, values.size() * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    holdStream();
    CHECK(cudaMemcpy2DFromArrayAsync(copied, width * sizeof(float), array, 0, 0, width * sizeof(float), height,
                                     cudaMemcpyDeviceToDevice, held));
    while (!reached) usleep(100);

    std::thread freeing([&] {
      free();
      CHECK(cudaFreeArray(large));
      CHECK(cudaMallocArray(&large, &floats, largeWidth, largeHeight));  // a small device has room for one of this size
      CHECK(cudaFreeArray(large));
    });
    usleep(20'000);
    runOther();
    released = true;
    freeing.join();
    CHECK(cudaStreamSynchronize(held));
    return same("copied from the freed array", copied.download(), values) & same("sum", sum.download(), {added});
  }

  // A driver frees an array when the earlier work is complete, and the call waits for that. A session's call need not wait: the held work
  // may then start before the free is executed, and the free must not wait for it.
  bool freesBeforeHeldWork() {
    allocate();
    CHECK(cudaDeviceSynchronize());
    isOver = false;
    CHECK(cudaLaunchHostFunc(brief, runShortly, nullptr));
    free();
    holdStream();
    while (!isOver || !reached) usleep(100);
    usleep(20'000);  // a free that waited for nothing else has begun
    runOther();
    released = true;
    CHECK(cudaDeviceSynchronize());
    return same("sum", sum.download(), {added});
  }

 private:
  void allocate() {
    constexpr cudaExtent extent{width, height, 0};
    CHECK(cudaMallocArray(&array, &floats, width, height));
    CHECK(cudaMallocMipmappedArray(&mipmap, &floats, extent, 4));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, values.data(), width * sizeof(float), width * sizeof(float), height,
                              cudaMemcpyHostToDevice));
  }
  void free() {
    CHECK(cudaFreeArray(array));
    CHECK(cudaFreeMipmappedArray(mipmap));
  }
  void holdStream() {
    reached = released = false;
    CHECK(cudaLaunchHostFunc(held, hold, nullptr));
  }
  void runOther() {
    add<<<1, 1, 0, other>>>(sum, 1);
    CHECK(cudaStreamSynchronize(other));
    ++added;
  }

  const std::vector<float> values = randomFloats(width * height, 0, 1, 5);
  DeviceArray<int> sum{std::vector<int>{0}};
  DeviceArray<float> copied{values.size()};
  int added = 0;
  cudaStream_t held, brief, other;
  cudaArray_t array;
  cudaMipmappedArray_t mipmap;
};

}  // namespace

int main() {
  alarm(60);
  loadKernel(add);
  Work work;
  bool ok = true;
  for (int round = 0; round < 2; ++round) {
    ok &= work.freesBehindHeldWork();
    ok &= work.freesBeforeHeldWork();
    if (round == 0) pausePoint();
  }
  return verdict("held-frees", ok);
}
