// Launch attributes: hints, events, early starts, clusters. For launches, for graphs that captured them, and for nodes whose attributes are
// set.
#include "program.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr unsigned blocks = 8, blockSize = 32;

__global__ void square(unsigned* values) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = i * i;
}

// Stores the size of each block's cluster, plus `more`.
__global__ void sizeOfCluster(unsigned* sizes, unsigned more) {
  if (threadIdx.x == 0) sizes[blockIdx.x] = cg::this_cluster().num_blocks() + more;
}

__global__ void produce(unsigned* values, unsigned value) {
  cudaTriggerProgrammaticLaunchCompletion();  // the next kernel may begin, but waits before it reads the memory
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void consume(const unsigned* values, unsigned* sums) {
  cudaGridDependencySynchronize();
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  sums[i] += values[i];
}

struct Launch {
  explicit Launch(cudaStream_t stream) { config.gridDim = blocks, config.blockDim = blockSize, config.stream = stream; }
  cudaLaunchAttribute& add(cudaLaunchAttributeID id) {
    attributes[config.numAttrs].id = id;
    config.attrs = attributes;
    return attributes[config.numAttrs++];
  }
  template <typename... Parameters, typename... Given>
  cudaError_t operator()(void (*kernel)(Parameters...), Given... given) {
    return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(given)...);
  }

  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attributes[8] = {};
};

std::vector<unsigned> squares() {
  std::vector<unsigned> values(blocks * blockSize);
  for (unsigned i = 0; i < values.size(); ++i) values[i] = i * i;
  return values;
}

bool acceptsHints(cudaStream_t stream) {
  DeviceArray<unsigned> values(blocks * blockSize);
  Launch launch(stream);
  launch.add(cudaLaunchAttributePriority);
  launch.add(cudaLaunchAttributeMemSyncDomain).val.memSyncDomain = cudaLaunchMemSyncDomainDefault;
  launch.add(cudaLaunchAttributePreferredSharedMemoryCarveout).val.sharedMemCarveout = 50;
  launch.add(cudaLaunchAttributeClusterSchedulingPolicyPreference).val.clusterSchedulingPolicyPreference =
      cudaClusterSchedulingPolicyLoadBalancing;
  launch.add(cudaLaunchAttributeIgnore);
  CHECK(launch(square, static_cast<unsigned*>(values)));
  CHECK(cudaStreamSynchronize(stream));
  return same("squares", values.download(), squares());
}

// Such a launch sees managed memory that the program has touched, and the program sees what it writes.
bool bringsManagedMemory(cudaStream_t stream) {
  unsigned *from, *to;
  CHECK(cudaMallocManaged(&from, blocks * blockSize * sizeof *from));
  CHECK(cudaMallocManaged(&to, blocks * blockSize * sizeof *to));
  bool ok = true;
  for (unsigned round = 1; round < 4; ++round) {
    for (unsigned i = 0; i < blocks * blockSize; ++i) from[i] = i * round, to[i] = round;
    Launch launch(stream);
    launch.add(cudaLaunchAttributeProgrammaticStreamSerialization).val.programmaticStreamSerializationAllowed = 1;
    CHECK(launch(consume, from, to));
    CHECK(cudaStreamSynchronize(stream));
    for (unsigned i = 0; i < blocks * blockSize; ++i) ok &= to[i] == i * round + round;
  }
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
  return EXPECT(ok);
}

bool recordsEvents(cudaStream_t stream) {
  cudaEvent_t begun, triggered, timed;
  CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&triggered, cudaEventDisableTiming));
  CHECK(cudaEventCreate(&timed));
  cudaStream_t other;
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  DeviceArray<unsigned> values(blocks * blockSize), sums(std::vector<unsigned>(blocks * blockSize, 1));
  bool ok = true;
  {
    Launch launch(stream);
    launch.add(cudaLaunchAttributeLaunchCompletionEvent).val.launchCompletionEvent = {begun, 0};
    CHECK(launch(square, static_cast<unsigned*>(values)));
    CHECK(cudaEventSynchronize(begun));
    ok &= EXPECT_ERROR(cudaEventQuery(begun), cudaSuccess);
  }
  {
    Launch launch(stream);
    launch.add(cudaLaunchAttributeProgrammaticEvent).val.programmaticEvent = {triggered, 0, 0};
    CHECK(launch(produce, static_cast<unsigned*>(values), 5u));
    CHECK(cudaStreamWaitEvent(other, triggered, 0));
    consume<<<blocks, blockSize, 0, other>>>(values, sums);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamSynchronize(other));
    ok &= EXPECT_ERROR(cudaEventQuery(triggered), cudaSuccess);
    ok &= same("after the event", sums.download(), std::vector<unsigned>(blocks * blockSize, 6));
  }
  Launch wrong(stream);
  wrong.add(cudaLaunchAttributeLaunchCompletionEvent).val.launchCompletionEvent = {timed, 0};
  ok &= EXPECT(wrong(square, static_cast<unsigned*>(values)) != cudaSuccess);  // an event that would measure time
  cudaGetLastError();
  for (cudaEvent_t event : {begun, triggered, timed}) CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(other));
  return ok;
}

bool startsEarly(cudaStream_t stream) {
  DeviceArray<unsigned> values(blocks * blockSize), sums(std::vector<unsigned>(blocks * blockSize, 0));
  constexpr unsigned rounds = 50;
  for (unsigned round = 1; round <= rounds; ++round) {
    for (bool isConsumer : {false, true}) {
      Launch launch(stream);
      launch.add(cudaLaunchAttributeProgrammaticStreamSerialization).val.programmaticStreamSerializationAllowed = isConsumer;
      CHECK(isConsumer ? launch(consume, static_cast<unsigned*>(values), static_cast<unsigned*>(sums))
                       : launch(produce, static_cast<unsigned*>(values), round));
    }
  }
  CHECK(cudaStreamSynchronize(stream));
  return same("sums", sums.download(), std::vector<unsigned>(blocks * blockSize, rounds * (rounds + 1) / 2));
}

bool refusesWrongAttributes(cudaStream_t stream) {
  DeviceArray<unsigned> values(blocks * blockSize);
  auto isRefused = [&](Launch& launch) {
    cudaError_t result = launch(square, static_cast<unsigned*>(values));
    cudaGetLastError();
    return result != cudaSuccess;
  };
  Launch ofStream(stream), noList(stream), noCluster(stream);
  ofStream.add(cudaLaunchAttributeSynchronizationPolicy).val.syncPolicy = cudaSyncPolicySpin;
  noList.config.numAttrs = 1;
  noCluster.add(cudaLaunchAttributeClusterDimension).val.clusterDim.x = 2;  // and 0 in the other dimensions
  return EXPECT(isRefused(ofStream)) & EXPECT(isRefused(noList)) & EXPECT(isRefused(noCluster));
}

unsigned clusterOfNode(cudaGraphNode_t node) {
  cudaLaunchAttributeValue value{};
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  return value.clusterDim.x;
}

// A graph with one kernel, captured from a launch with clusters of four blocks.
struct CapturedCluster {
  explicit CapturedCluster(cudaStream_t stream) : stream(stream) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    Launch launch(stream);
    launch.add(cudaLaunchAttributeClusterDimension).val.clusterDim = {4, 1, 1};
    launch.add(cudaLaunchAttributePriority);
    CHECK(launch(sizeOfCluster, static_cast<unsigned*>(sizes), 0u));
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t count = 1;
    CHECK(cudaGraphGetNodes(graph, &node, &count));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
  }
  ~CapturedCluster() {
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
  }
  bool gives(cudaGraphExec_t launched, unsigned expected) {
    CHECK(cudaGraphLaunch(launched, stream));
    CHECK(cudaStreamSynchronize(stream));
    return same("sizes of clusters", sizes.download(), std::vector<unsigned>(blocks, expected));
  }
  cudaError_t setMore(unsigned more) {
    cudaKernelNodeParams params{};
    CHECK(cudaGraphKernelNodeGetParams(node, &params));
    unsigned* to = sizes;
    void* parameters[] = {&to, &more};
    params.kernelParams = parameters;
    return cudaGraphExecKernelNodeSetParams(executable, node, &params);
  }

  cudaStream_t stream;
  DeviceArray<unsigned> sizes{blocks};
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t executable;
};

// Attributes belong to the node: they stay when its parameters change, and can be set and copied.
bool nodesKeepAttributes(CapturedCluster& captured) {
  bool ok = EXPECT(clusterOfNode(captured.node) == 4) & captured.gives(captured.executable, 4);
  CHECK(captured.setMore(100));
  ok &= captured.gives(captured.executable, 104);
  cudaGraph_t clone;
  cudaGraphNode_t copy;
  CHECK(cudaGraphClone(&clone, captured.graph));
  CHECK(cudaGraphNodeFindInClone(&copy, captured.node, clone));
  cudaLaunchAttributeValue two{};
  two.clusterDim = {2, 1, 1};
  CHECK(cudaGraphKernelNodeSetAttribute(copy, cudaLaunchAttributeClusterDimension, &two));
  ok &= EXPECT(clusterOfNode(copy) == 2) & EXPECT(clusterOfNode(captured.node) == 4);
  cudaGraphExec_t second;
  CHECK(cudaGraphInstantiate(&second, clone, 0));
  ok &= captured.gives(second, 2);
  CHECK(cudaGraphExecDestroy(second));
  CHECK(cudaGraphKernelNodeCopyAttributes(copy, captured.node));
  ok &= EXPECT(clusterOfNode(copy) == 4);
  CHECK(cudaGraphDestroy(clone));
  return ok;
}

// A stream's attributes stay, and can be copied to another stream.
bool streamsHaveAttributes(cudaStream_t stream, cudaStream_t other) {
  cudaLaunchAttributeValue domain{}, found{};
  domain.memSyncDomain = cudaLaunchMemSyncDomainRemote;
  CHECK(cudaStreamSetAttribute(stream, cudaLaunchAttributeMemSyncDomain, &domain));
  CHECK(cudaStreamCopyAttributes(other, stream));
  CHECK(cudaStreamGetAttribute(other, cudaLaunchAttributeMemSyncDomain, &found));
  return EXPECT(found.memSyncDomain == cudaLaunchMemSyncDomainRemote);
}

int main() {
  int hasClusters = 0;
  CHECK(cudaDeviceGetAttribute(&hasClusters, cudaDevAttrClusterLaunch, 0));
  if (!hasClusters) return notHere;
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CapturedCluster captured(stream);
  bool ok = acceptsHints(stream) & bringsManagedMemory(stream) & recordsEvents(stream) & startsEarly(stream) &
            refusesWrongAttributes(stream) & nodesKeepAttributes(captured) & streamsHaveAttributes(stream, other);

  pausePoint();

  cudaLaunchAttributeValue found{};
  CHECK(cudaStreamGetAttribute(other, cudaLaunchAttributeMemSyncDomain, &found));
  ok &= EXPECT(found.memSyncDomain == cudaLaunchMemSyncDomainRemote);
  ok &= captured.gives(captured.executable, 104);
  CHECK(captured.setMore(0));
  ok &= captured.gives(captured.executable, 4) & acceptsHints(stream) & startsEarly(stream);
  return verdict("launch-attributes", ok);
}
