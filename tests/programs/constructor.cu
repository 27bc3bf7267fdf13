// A global object that allocates device memory and launches a kernel before main begins, and frees it after main has ended.
#include "program.h"

__device__ int calls = 40;

__global__ void countCall(int* seen) { *seen = ++calls; }

class Early {
 public:
  Early() {
    CHECK(cudaMalloc(&seen, sizeof(int)));
    launch();
  }
  ~Early() {
    // The runtime may already be unloading; no other error is allowed.
    const cudaError_t error = cudaFree(seen);
    if (error != cudaSuccess && error != cudaErrorCudartUnloading) {
      std::fprintf(stderr, "constructor: freeing after main: %s\n", cudaGetErrorName(error));
      std::_Exit(1);
    }
  }
  void launch() {
    countCall<<<1, 1>>>(seen);
    CHECK(cudaGetLastError());
  }
  int value() const {
    int value = 0;
    CHECK(cudaMemcpy(&value, seen, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  }

 private:
  int* seen = nullptr;
};

static Early early;

int main() {
  bool ok = EXPECT(early.value() == 41);
  pausePoint();
  early.launch();
  ok &= EXPECT(early.value() == 42);
  return verdict("constructor", ok);
}
