// Freed memory counts as free when its streams have reached the free, even if the program allocates nothing more: stream-ordered frees of
// memory from any kind of allocation, managed memory, and memory of graphs.
#include "in-session.h"
#include "managed.h"
#include "program.h"

__global__ void fill(char* data, size_t bytes) {
  for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) data[i] = 1;
}

namespace {

size_t available() {
  size_t free, total;
  CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

// `before` bytes are free again, except for what other programs take meanwhile; a leak of `bytes` would show.
bool isFree(const char* what, size_t before, size_t bytes) {
  const size_t after = available();
  const bool ok = after + bytes / 4 >= before;
  if (!ok) std::printf("%s: %zu KiB were free, and %zu KiB are\n", what, before >> 10, after >> 10);
  return ok;
}

class Device {
 public:
  Device() { CHECK(cudaStreamCreate(&stream)); }
  ~Device() { CHECK(cudaStreamDestroy(stream)); }

  bool countsFreed(size_t bytes) {
    const size_t before = available();
    char* data = nullptr;
    CHECK(cudaMallocAsync(&data, bytes, stream));
    free(data);
    bool ok = isFree("allocated and freed in a stream", before, bytes);
    CHECK(cudaMalloc(&data, bytes));
    free(data);
    ok &= isFree("freed in a stream", before, bytes);
    CHECK(cudaMallocManaged(&data, bytes));
    fill<<<1, 256>>>(data, 4096);
    CHECK(cudaDeviceSynchronize());
    ok &= EXPECT(data[4095] == 1);
    CHECK(cudaFree(data));
    ok &= isFree("managed memory", before, bytes);
    return ok & countsGraphs(before, bytes);
  }

 private:
  void free(char* data) {
    fill<<<1, 256, 0, stream>>>(data, 4096);
    CHECK(cudaFreeAsync(data, stream));
    CHECK(cudaStreamSynchronize(stream));
  }

  // The driver keeps graphs' memory until it is trimmed.
  bool countsGraphs(size_t before, size_t bytes) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    void* data = nullptr;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(cudaMallocAsync(&data, bytes, stream));
    fill<<<1, 256, 0, stream>>>(static_cast<char*>(data), 4096);
    CHECK(cudaFreeAsync(data, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaDeviceGraphMemTrim(0));
    return isFree("memory of a graph", before, bytes);
  }

  cudaStream_t stream;
};

}  // namespace

int main() {
  if (!isConcurrent() && !inSession) return notHere;
  Device device;
  fill<<<1, 1>>>(nullptr, 0);  // a kernel is loaded at its first use, which needs memory
  CHECK(cudaDeviceSynchronize());
  const size_t bytes = available() / 20;
  bool ok = device.countsFreed(bytes);
  pausePoint();
  ok &= device.countsFreed(bytes);
  return verdict("freed-memory", ok);
}
