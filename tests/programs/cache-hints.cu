// Persisting L2 cache: the set-aside size and the access policy windows have the maximum sizes of the GPU that the program begins on. On a
// GPU with smaller limits these hints are reduced, and the program goes on.
#include "program.h"

namespace {

__global__ void addOne(unsigned* to) { ++*to; }

class Hints {
 public:
  Hints() {
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    set();
    cudaGraph_t graph;
    cudaGraphNode_t node;
    unsigned* to = count;
    void* arguments[]{&to};
    cudaKernelNodeParams kernel{};
    kernel.func = reinterpret_cast<void*>(addOne);
    kernel.gridDim = kernel.blockDim = dim3(1);
    kernel.kernelParams = arguments;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
    CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeAccessPolicyWindow, &window.val));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }
  ~Hints() {
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaStreamDestroy(stream));
  }
  Hints(const Hints&) = delete;
  Hints& operator=(const Hints&) = delete;

  void set() {
    window.id = cudaLaunchAttributeAccessPolicyWindow;
    window.val.accessPolicyWindow.base_ptr = count;
    window.val.accessPolicyWindow.num_bytes = gpu.accessPolicyMaxWindowSize;
    window.val.accessPolicyWindow.hitRatio = 0.5f;
    window.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, gpu.persistingL2CacheMaxSize));
    CHECK(cudaStreamSetAttribute(stream, cudaLaunchAttributeAccessPolicyWindow, &window.val));
  }
  // One launch with the stream's window, one with its own, one with its graph node's.
  bool work() {
    count.upload({0});
    unsigned* to = count;
    cudaLaunchConfig_t launch{};
    launch.gridDim = launch.blockDim = dim3(1);
    launch.stream = stream;
    CHECK(cudaLaunchKernelEx(&launch, addOne, to));
    launch.attrs = &window;
    launch.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&launch, addOne, to));
    CHECK(cudaGraphLaunch(exec, stream));
    if (!EXPECT_ERROR(cudaStreamSynchronize(stream), cudaSuccess)) return false;
    return same("launches", count.download(), {3u});
  }

 private:
  static cudaStream_t madeStream() {
    cudaStream_t made;
    CHECK(cudaStreamCreate(&made));
    return made;
  }

  cudaDeviceProp gpu;
  cudaStream_t stream = madeStream();
  DeviceArray<unsigned> count{1};
  cudaLaunchAttribute window{};
  cudaGraphExec_t exec;
};

}  // namespace

int main() {
  Hints hints;
  bool ok = hints.work();
  pausePoint();
  ok &= hints.work();
  hints.set();
  return verdict("cache-hints", ok & hints.work());
}
