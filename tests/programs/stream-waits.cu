// Waiting for a stream whose completion word another stream's work used before: the wait ends with the stream's own work.
#include <thread>

#include "memory-node.h"
#include "program.h"

namespace {

__global__ void await(const volatile int* flag, int* memory) {
  while (*flag == 0) {
  }
  *memory = 1;
}
__global__ void store(int* to) { *to = 0; }

// Memory that a graph's launch allocates, and that is freed in another stream.
int* allocateByGraph(cudaStream_t stream, cudaGraphExec_t& exec) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaMemAllocNodeParams memory = memoryNode(4096);
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &memory));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  return static_cast<int*>(memory.dptr);
}

bool endsWithItsOwnWork() {
  cudaStream_t waited, other;
  cudaGraphExec_t exec;
  int* flag;
  CHECK(cudaMallocHost(&flag, sizeof *flag));
  for (cudaStream_t* stream : {&waited, &other}) CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  int* memory = allocateByGraph(other, exec);
  store<<<1, 1, 0, other>>>(memory);  // loads the kernel
  CHECK(cudaStreamSynchronize(other));
  std::atomic<bool> isReleased{false};
  *flag = 0;
  await<<<1, 1, 0, waited>>>(flag, memory);
  CHECK(cudaLaunchHostFunc(other, [](void*) {}, nullptr));
  CHECK(cudaStreamSynchronize(other));
  CHECK(cudaFreeAsync(memory, waited));
  std::thread releasing([&] {
    usleep(50'000);
    isReleased = true;
    *static_cast<volatile int*>(flag) = 1;
  });
  CHECK(cudaStreamSynchronize(waited));
  const bool ok = EXPECT(isReleased.load());
  releasing.join();
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphExecDestroy(exec));
  for (cudaStream_t stream : {waited, other}) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(flag));
  return ok;
}

}  // namespace

int main() {
  alarm(60);
  loadKernel(await);
  bool ok = endsWithItsOwnWork();
  pausePoint();
  ok &= endsWithItsOwnWork();
  return verdict("stream-waits", ok);
}
