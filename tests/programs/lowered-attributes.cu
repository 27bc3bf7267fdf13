// Executable graphs of a kernel that at the pause is allowed less dynamic shared memory than when they were instantiated, or updated, as
// for a kernel whose size differs between launches: when it is allowed as much again, each works as before. An earlier cooperative launch
// with the larger size does not prevent a suspend.
#include "program.h"

namespace {

constexpr int large = 60000, small = 1000;

__global__ void addLast(int* sum, int value, int bytes) {
  extern __shared__ int shared[];
  shared[bytes / 4 - 1] = value;
  *sum += shared[bytes / 4 - 1];
}

void allow(int bytes) { CHECK(cudaFuncSetAttribute(addLast, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)); }

// A launch that adds a value, with that much shared memory.
struct Addition {
  int* sum;
  int value, bytes;
  void* arguments[3] = {&sum, &value, &bytes};

  cudaKernelNodeParams node() {
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(addLast);
    params.gridDim = params.blockDim = dim3(1);
    params.sharedMemBytes = static_cast<unsigned>(bytes);
    params.kernelParams = arguments;
    return params;
  }
};

struct Graph {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t executable;

  explicit Graph(Addition addition) {
    const cudaKernelNodeParams params = addition.node();
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
  }
  void set(Addition addition) {
    const cudaKernelNodeParams params = addition.node();
    CHECK(cudaGraphExecKernelNodeSetParams(executable, node, &params));
  }
};

}  // namespace

int main() {
  DeviceArray<int> sum(std::vector<int>{0});
  allow(large);
  Addition cooperative{sum, 1000, large};
  CHECK(cudaLaunchCooperativeKernel(addLast, 1, 1, cooperative.arguments, large, nullptr));
  Graph made({sum, 1, large}), set({sum, 100, small});
  set.set({sum, 10, large});
  allow(small);
  bool ok = true;
  auto launchBoth = [&](int expected) {
    CHECK(cudaGraphLaunch(made.executable, nullptr));
    CHECK(cudaGraphLaunch(set.executable, nullptr));
    ok &= same("sum", sum.download(), {expected});
  };
  pausePoint();
  allow(large);
  launchBoth(1011);
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, addLast));
  ok &= EXPECT(attributes.maxDynamicSharedSizeBytes == large);
  return verdict("lowered-attributes", ok);
}
