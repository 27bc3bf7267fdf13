// Memory freed in the legacy stream behind kernels of a blocking stream, or the reverse, is not reused before these kernels have run: not
// by a third stream that allocates and fills meanwhile.
#include "program.h"

using Flag = volatile int;

__global__ void awaitHost(const Flag* flag) {
  while (*flag == 0) __threadfence_system();
}
__global__ void copyWords(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }

namespace {

constexpr int count = 1 << 14, copied = 32, tries = 40, blocksOfTry = 4;
constexpr size_t bytes = count * sizeof(int);

struct Order {
  Order() {
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    int no = 0;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    // Otherwise the pool may reuse freed memory early and make the stream wait.
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &no));
    CHECK(cudaStreamCreate(&blocking));
    int* word;
    CHECK(cudaMallocHost(&word, sizeof *word));
    flag = word;
    // The pool already has the memory that is allocated below, so that it need not grow while kernels wait; as one piece, which no single
    // block uses up.
    void* memory;
    CHECK(cudaMallocAsync(&memory, 2 * tries * blocksOfTry * bytes, blocking));
    CHECK(cudaMemsetAsync(memory, 0, bytes, blocking));
    CHECK(cudaFreeAsync(memory, blocking));
    CHECK(cudaDeviceSynchronize());
  }
  ~Order() {
    CHECK(cudaStreamDestroy(blocking));
    CHECK(cudaFreeHost(const_cast<int*>(flag)));
  }

  // Two kernels in sequence: the first waits, the second reads the memory that is freed in the other stream.
  bool keeps(cudaStream_t kernels, cudaStream_t frees, int value) {
    int* memory = nullptr;
    DeviceArray<int> out(copied);
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));  // a new stream, which has freed nothing itself
    CHECK(cudaMallocAsync(&memory, bytes, kernels));
    const std::vector<int> values(count, value);
    CHECK(cudaMemcpyAsync(memory, values.data(), bytes, cudaMemcpyHostToDevice, kernels));
    CHECK(cudaDeviceSynchronize());
    *flag = 0;
    awaitHost<<<1, 1, 0, kernels>>>(flag);
    copyWords<<<1, copied, 0, kernels>>>(out, memory);
    CHECK(cudaFreeAsync(memory, frees));
    bool ok = true;
    std::vector<int*> blocks;
    for (int i = 0; i < tries && ok; ++i) {
      for (int k = 0; k < blocksOfTry; ++k) ok &= EXPECT(isApart(allocated(blocks, other), memory));
      usleep(1000);
    }
    *flag = 1;
    CHECK(cudaDeviceSynchronize());
    ok &= same("what was freed behind it", out.download(), std::vector<int>(copied, value));
    for (int* block : blocks) CHECK(cudaFreeAsync(block, other));
    CHECK(cudaMallocAsync(&memory, bytes, other));
    CHECK(cudaFreeAsync(memory, other));
    CHECK(cudaStreamSynchronize(other));
    CHECK(cudaStreamDestroy(other));
    return ok;
  }
  bool keepsBoth(int value) {
    bool ok = true;
    for (int round = 0; round < 3; ++round) {
      ok &= keeps(blocking, cudaStreamLegacy, value++);
      ok &= keeps(cudaStreamLegacy, blocking, value++);
    }
    return ok;
  }

 private:
  static bool isApart(const int* block, const int* memory) { return block + count <= memory || memory + count <= block; }
  static int* allocated(std::vector<int*>& blocks, cudaStream_t stream) {
    int* block;
    CHECK(cudaMallocAsync(&block, bytes, stream));
    CHECK(cudaMemsetAsync(block, 0x55, bytes, stream));
    blocks.push_back(block);
    return block;
  }

  cudaStream_t blocking = nullptr;
  Flag* flag = nullptr;
};

}  // namespace

int main() {
  alarm(60);
  loadKernel(awaitHost);
  loadKernel(copyWords);
  Order order;
  DeviceArray<int> kept(std::vector<int>(count, 7));
  bool ok = order.keepsBoth(100);
  pausePoint();
  ok &= order.keepsBoth(200);
  ok &= same("kept", kept.download(), std::vector<int>(count, 7));
  return verdict("frees-in-order", ok);
}
