// Graph nodes by the driver's entries for each type: the parameters that a node was made with are returned, other ones are set in the graph
// or in the executable graph, and a launch uses them.
#include "exported-entry.h"

namespace {

__global__ void add(int* to, int value) { *to += value; }

enum Word { filled, added, copied, written, awaited, words };

struct Values {
  int* at = nullptr;  // pinned
  Values() {
    CHECK(cudaMallocHost(&at, words * sizeof *at));
    for (int i = 0; i < words; ++i) at[i] = 0;
  }
  ~Values() { CHECK(cudaFreeHost(at)); }
  CUdeviceptr operator()(Word word) const { return reinterpret_cast<CUdeviceptr>(at + word); }
};

CUDA_MEMSET_NODE_PARAMS_v1 fillOf(const Values& values, unsigned value) { return {values(filled), 0, value, 4, 1, 1}; }

CUDA_MEMCPY3D_v2 copyOf(const Values& values, Word from) {
  CUDA_MEMCPY3D_v2 copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = values(from);
  copy.dstDevice = values(copied);
  copy.WidthInBytes = sizeof(int);
  copy.Height = copy.Depth = 1;
  return copy;
}

CUstreamBatchMemOpParams writeOf(const Values& values, unsigned value) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = values(written);
  operation.writeValue.value = value;
  return operation;
}

// A kernel node with its arguments.
struct Addition {
  int* to;
  int value;
  void* arguments[2] = {&to, &value};
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  Addition(const Values& values, int value) : to(values.at + added), value(value) {
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(add)));
    params.func = function;
    params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
  }
};

int calls[3] = {};
void count(void* which) { ++calls[reinterpret_cast<size_t>(which)]; }

struct Nodes {
  CUgraph graph = nullptr, inner = nullptr;
  CUgraphNode fill, kernel, copy, host, write, wait, child, ofChild;
  CUevent events[2];
};

bool make(const Values& values, CUcontext context, Nodes& nodes) {
  auto fill = fillOf(values, 1);
  auto copy = copyOf(values, added);
  Addition addition(values, 1);
  CUDA_HOST_NODE_PARAMS_v1 host{count, nullptr};
  CUstreamBatchMemOpParams write = writeOf(values, 1);
  CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 batch{context, 1, &write, 0};
  bool ok = WORKS(cuGraphCreate, &nodes.graph, 0) & WORKS(cuGraphCreate, &nodes.inner, 0);
  for (auto& event : nodes.events) ok &= WORKS(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  ok &= WORKS(cuGraphAddEmptyNode, &nodes.ofChild, nodes.inner, nullptr, 0);
  ok &= WORKS(cuGraphAddMemsetNode, &nodes.fill, nodes.graph, nullptr, 0, &fill, context) &&
        WORKS(cuGraphAddKernelNode_v2, &nodes.kernel, nodes.graph, &nodes.fill, 1, &addition.params) &&
        WORKS(cuGraphAddMemcpyNode, &nodes.copy, nodes.graph, &nodes.kernel, 1, &copy, context) &&
        WORKS(cuGraphAddHostNode, &nodes.host, nodes.graph, &nodes.copy, 1, &host) &&
        WORKS(cuGraphAddBatchMemOpNode, &nodes.write, nodes.graph, &nodes.host, 1, &batch) &&
        WORKS(cuGraphAddEventWaitNode, &nodes.wait, nodes.graph, &nodes.write, 1, nodes.events[0]) &&
        WORKS(cuGraphAddChildGraphNode, &nodes.child, nodes.graph, &nodes.wait, 1, nodes.inner);
  return ok;
}

bool areTold(const Values& values, const Nodes& nodes) {
  CUDA_MEMSET_NODE_PARAMS_v1 fill{};
  CUDA_MEMCPY3D_v2 copy{};
  CUDA_HOST_NODE_PARAMS_v1 host{};
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  CUevent event = nullptr;
  CUgraph inner = nullptr;
  size_t count = 0;
  bool ok = WORKS(cuGraphMemsetNodeGetParams, nodes.fill, &fill) & WORKS(cuGraphMemcpyNodeGetParams, nodes.copy, &copy) &
            WORKS(cuGraphHostNodeGetParams, nodes.host, &host) & WORKS(cuGraphKernelNodeGetParams_v2, nodes.kernel, &kernel) &
            WORKS(cuGraphEventWaitNodeGetEvent, nodes.wait, &event) & WORKS(cuGraphChildGraphNodeGetGraph, nodes.child, &inner);
  ok &= EXPECT(fill.dst == values(filled)) & EXPECT(fill.value == 1) & EXPECT(copy.dstDevice == values(copied)) &
        EXPECT(host.fn == ::count) & EXPECT(*static_cast<int*>(kernel.kernelParams[1]) == 1) & EXPECT(event == nodes.events[0]);
  return ok & WORKS(cuGraphGetNodes, inner, nullptr, &count) & EXPECT(count == 1) &
         GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphHostNodeGetParams, nodes.copy, &host);
}

bool does(const Values& values, CUgraphExec exec, int fill, int sum, int copy, unsigned write) {
  for (int i = 0; i < words; ++i) values.at[i] = 100;
  return WORKS(cuGraphLaunch, exec, nullptr) & WORKS(cuCtxSynchronize) & EXPECT(values.at[filled] == fill) &
         EXPECT(values.at[added] == sum) & EXPECT(values.at[copied] == copy) &
         EXPECT(values.at[written] == static_cast<int>(write));
}

bool isChanged(const Values& values, CUcontext context, Nodes& nodes) {
  auto fill = fillOf(values, 2);
  auto copy = copyOf(values, filled);
  Addition addition(values, 2);
  CUDA_HOST_NODE_PARAMS_v1 host{count, reinterpret_cast<void*>(1)};
  CUstreamBatchMemOpParams write = writeOf(values, 2);
  CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 batch{context, 1, &write, 0};
  return WORKS(cuGraphMemsetNodeSetParams, nodes.fill, &fill) & WORKS(cuGraphMemcpyNodeSetParams, nodes.copy, &copy) &
         WORKS(cuGraphKernelNodeSetParams_v2, nodes.kernel, &addition.params) &
         WORKS(cuGraphHostNodeSetParams, nodes.host, &host) & WORKS(cuGraphBatchMemOpNodeSetParams, nodes.write, &batch) &
         WORKS(cuGraphEventWaitNodeSetEvent, nodes.wait, nodes.events[1]);
}

bool isChangedInExec(const Values& values, CUcontext context, const Nodes& nodes, CUgraphExec exec) {
  auto copy = copyOf(values, awaited);
  CUDA_HOST_NODE_PARAMS_v1 host{count, reinterpret_cast<void*>(2)};
  return WORKS(cuGraphExecMemcpyNodeSetParams, exec, nodes.copy, &copy, context) &
         WORKS(cuGraphExecHostNodeSetParams, exec, nodes.host, &host) &
         WORKS(cuGraphExecEventWaitNodeSetEvent, exec, nodes.wait, nodes.events[0]);
}

}  // namespace

int main() {
  Values values;
  Nodes nodes;
  CUcontext context = nullptr;
  CUgraphExec first = nullptr, second = nullptr;
  loadKernel(add);
  bool ok = WORKS(cuCtxGetCurrent, &context) && make(values, context, nodes) && areTold(values, nodes);
  if (!ok) return verdict("driver-nodes", false);
  ok &= WORKS(cuGraphInstantiate_v2, &first, nodes.graph, nullptr, nullptr, 0) && does(values, first, 1, 101, 101, 1) &&
        EXPECT(calls[0] == 1);
  ok &= isChanged(values, context, nodes) && WORKS(cuGraphInstantiate, &second, nodes.graph, nullptr, nullptr, 0);
  ok &= does(values, second, 2, 102, 2, 2) & EXPECT(calls[1] == 1) & does(values, first, 1, 101, 101, 1) & EXPECT(calls[0] == 2);
  pausePoint();
  ok &= isChangedInExec(values, context, nodes, second) & does(values, second, 2, 102, 100, 2) & EXPECT(calls[2] == 1);
  for (CUgraphExec exec : {first, second}) ok &= WORKS(cuGraphExecDestroy, exec);
  for (CUgraph graph : {nodes.graph, nodes.inner}) ok &= WORKS(cuGraphDestroy, graph);
  for (CUevent event : nodes.events) ok &= WORKS(cuEventDestroy_v2, event);
  return verdict("driver-nodes", ok);
}
