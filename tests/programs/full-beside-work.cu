// An allocation that does not fit is refused even while a kernel waits for the program: allocations do not wait for work. Memory freed
// behind that kernel can be given to another stream, whose work then waits for the free.
#include "program.h"

struct Signals {
  volatile int started, release;
};

__global__ void waitForHost(Signals* signals, int* done) {
  signals->started = 1;
  while (!signals->release) __nanosleep(1000);
  *done += 1;
}
__global__ void fill(int* data, int value) { data[threadIdx.x] = value; }

namespace {

class Work {
 public:
  Work() {
    CHECK(cudaHostAlloc(&signals, sizeof(Signals), cudaHostAllocMapped));
    for (cudaStream_t* stream : {&waiting, &other}) CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  }
  ~Work() {
    for (cudaStream_t stream : {waiting, other}) CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFreeHost(signals));
  }

  bool isRefused() {
    int* small = nullptr;
    CHECK(cudaMallocAsync(&small, 1000, waiting));
    begin();
    CHECK(cudaFreeAsync(small, waiting));
    size_t available, total;
    CHECK(cudaMemGetInfo(&available, &total));
    void* memory = nullptr;
    cudaArray_t array = nullptr;
    const cudaChannelFormatDesc texels = cudaCreateChannelDesc<float4>();
    constexpr size_t width = 65536, rowBytes = width * sizeof(float4);
    bool ok = EXPECT_ERROR(cudaMalloc(&memory, available + (64 << 20)), cudaErrorMemoryAllocation) &
              EXPECT_ERROR(cudaMallocAsync(&memory, total, other), cudaErrorMemoryAllocation);
    if (total / rowBytes < 65536)  // the maximum size of an array
      ok &= EXPECT_ERROR(cudaMallocArray(&array, &texels, width, total / rowBytes), cudaErrorMemoryAllocation);
    ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation) & EXPECT_ERROR(cudaStreamQuery(waiting), cudaErrorNotReady);
    return end() & ok;
  }

  bool getsWhatIsFreed() {
    size_t available, total;
    CHECK(cudaMemGetInfo(&available, &total));
    const size_t bytes = available / 5 * 3;
    int *first = nullptr, *second = nullptr, value = 0;
    void* memory = nullptr;
    CHECK(cudaMallocAsync(&first, bytes, waiting));
    begin();
    CHECK(cudaFreeAsync(first, waiting));
    bool ok = EXPECT_ERROR(cudaMalloc(&memory, bytes), cudaErrorMemoryAllocation) &
              EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK(cudaMallocAsync(&second, bytes, other));
    fill<<<1, 32, 0, other>>>(second, 3);
    ok &= EXPECT_ERROR(cudaStreamQuery(waiting), cudaErrorNotReady) & EXPECT_ERROR(cudaStreamQuery(other), cudaErrorNotReady);
    ok &= end();
    CHECK(cudaMemcpyAsync(&value, second + 31, sizeof value, cudaMemcpyDeviceToHost, other));
    CHECK(cudaFreeAsync(second, other));
    CHECK(cudaStreamSynchronize(other));
    return ok & EXPECT(value == 3);
  }

 private:
  void begin() {
    signals->started = signals->release = 0;
    waitForHost<<<1, 1, 0, waiting>>>(signals, done);
    CHECK(cudaGetLastError());
    while (!signals->started) usleep(100);
    ++launched;
  }
  bool end() {
    signals->release = 1;
    CHECK(cudaStreamSynchronize(waiting));
    return same("kernels that have ended", done.download(), {launched});
  }

  Signals* signals;
  DeviceArray<int> done{std::vector<int>{0}};
  int launched = 0;
  cudaStream_t waiting, other;
};

}  // namespace

int main() {
  alarm(60);
  loadKernel(waitForHost);
  loadKernel(fill);
  Work work;
  bool ok = true;
  for (int round = 0; round < 2; ++round) {
    ok &= work.isRefused() & work.getsWhatIsFreed();
    if (round == 0) pausePoint();
  }
  return verdict("full-beside-work", ok);
}
