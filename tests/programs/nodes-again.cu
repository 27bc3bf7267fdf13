// Nodes that kernels change (updated-nodes.cu), over a pause at which no executable graph with such a node is uploaded: the handles in
// device memory still refer to the nodes afterwards, whether the graph had been instantiated, changed and destroyed, or not.
#include <memory>

#include "kernel-node.h"

using Node = cudaGraphDeviceNode_t;

__global__ void add(unsigned* to, unsigned value) { atomicAdd(to, value); }
__global__ void setValue(const Node* node, unsigned value, int* error) { *error = cudaGraphKernelNodeSetParam(*node, 8, value); }
__global__ void launch(const cudaGraphExec_t* graph, int* error) { *error = cudaGraphLaunch(*graph, cudaStreamGraphFireAndForget); }

namespace {

// A graph with one node that adds to a word; kernels change the addend.
class Adder {
 public:
  explicit Adder(unsigned long long flags = 0) : flags(flags) {
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = addKernel<unsigned*, unsigned>(graph, {}, add, word, 1u);
    cudaKernelNodeAttrValue value{}, answer{};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &answer));
    nodes.upload({answer.deviceUpdatableKernelNode.devNode});
  }
  ~Adder() {
    end();
    CHECK(cudaGraphDestroy(graph));
  }
  Adder(const Adder&) = delete;
  void instantiate() { CHECK(cudaGraphInstantiate(&executable, graph, flags)); }
  void end() {
    if (executable != nullptr) CHECK(cudaGraphExecDestroy(executable));
    executable = nullptr;
  }
  bool check(unsigned value) {
    if (executable == nullptr) instantiate();
    CHECK(cudaGraphUpload(executable, nullptr));
    setValue<<<1, 1>>>(nodes, value, error);
    bool ok = same("of the change", error.download(), {cudaSuccess});
    word.upload({0});
    if (flags == cudaGraphInstantiateFlagDeviceLaunch) ok &= byKernel();
    CHECK(cudaGraphLaunch(executable, nullptr));
    return ok & same("added", word.download(), {flags == 0 ? value : 2 * value});
  }

 private:
  // Launched by a kernel of a host graph.
  bool byKernel() {
    DeviceArray<cudaGraphExec_t> handle(std::vector<cudaGraphExec_t>{executable});
    cudaGraph_t root = nullptr;
    cudaGraphExec_t made = nullptr;
    CHECK(cudaGraphCreate(&root, 0));
    addKernel<const cudaGraphExec_t*, int*>(root, {}, launch, handle, error);
    CHECK(cudaGraphInstantiate(&made, root, 0));
    CHECK(cudaGraphLaunch(made, nullptr));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(made));
    CHECK(cudaGraphDestroy(root));
    return same("of the launch", error.download(), {cudaSuccess});
  }
  const unsigned long long flags;
  DeviceArray<unsigned> word{1};
  DeviceArray<int> error{1};
  DeviceArray<Node> nodes{1};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

}  // namespace

int main() {
  auto gone = std::make_unique<Adder>();  // so that handles are not in the order of their creation
  Adder never, ended, early;
  gone.reset();
  Adder forKernels(cudaGraphInstantiateFlagDeviceLaunch), endedForKernels(cudaGraphInstantiateFlagDeviceLaunch);
  bool ok = ended.check(3) & ended.check(4) & endedForKernels.check(5);
  ended.end();
  endedForKernels.end();
  early.instantiate();
  forKernels.instantiate();
  pausePoint();
  ok &= never.check(8) & ended.check(9) & early.check(10) & forKernels.check(11) & endedForKernels.check(12);
  return verdict("nodes-again", ok);
}
