// Memory that graphs allocate and free: explicit nodes, captured stream-ordered allocations, memory that outlives a launch, and user
// objects that graphs hold. Suspended while a graph's memory is allocated.
#include "memory-node.h"
#include "program.h"

constexpr int count = 1 << 12, block = 256, blocks = count / block;

__global__ void fill(int* values, int start) { values[blockIdx.x * block + threadIdx.x] = start + blockIdx.x * block + threadIdx.x; }
__global__ void doubled(int* out, const int* values) {
  const int i = blockIdx.x * block + threadIdx.x;
  out[i] = 2 * values[i];
}

std::vector<int> expected(int start, int factor) {
  std::vector<int> want(count);
  for (int i = 0; i < count; ++i) want[i] = factor * (start + i);
  return want;
}

unsigned long long amount(cudaGraphMemAttributeType which) {
  unsigned long long value = ~0ull;
  CHECK(cudaDeviceGetGraphMemAttribute(0, which, &value));
  return value;
}

// A buffer that lives only within the launch.
bool captured() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DeviceArray<int> out(count);
  int* buffer = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(reinterpret_cast<void**>(&buffer), count * sizeof(int), stream));
  fill<<<blocks, block, 0, stream>>>(buffer, 7);
  doubled<<<blocks, block, 0, stream>>>(out, buffer);
  CHECK(cudaFreeAsync(buffer, stream));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  bool ok = EXPECT(nodes == 4);
  cudaGraphNode_t all[4];
  CHECK(cudaGraphGetNodes(graph, all, &nodes));
  cudaMemAllocNodeParams params;
  CHECK(cudaGraphMemAllocNodeGetParams(all[0], &params));
  ok &= EXPECT(params.dptr == buffer) & EXPECT(params.bytesize == count * sizeof(int));
  void* freed = nullptr;
  CHECK(cudaGraphMemFreeNodeGetParams(all[3], &freed));
  ok &= EXPECT(freed == buffer);
  cudaGraph_t clone;
  ok &= EXPECT_ERROR(cudaGraphClone(&clone, graph), cudaErrorNotSupported);
  cudaGetLastError();
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    ok &= same("captured", out.download(), expected(7, 2));
  }
  ok &= EXPECT(amount(cudaGraphMemAttrUsedMemHigh) >= count * sizeof(int));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaDeviceGraphMemTrim(0));
  ok &= EXPECT(amount(cudaGraphMemAttrReservedMemCurrent) == 0);
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

// Memory that a launch allocates and that is freed elsewhere.
bool kept() {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams params = memoryNode(count * sizeof(int));
  cudaGraphNode_t alloc, kernel;
  CHECK(cudaGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &params));
  int start = 100, *values = static_cast<int*>(params.dptr);
  void* arguments[] = {&values, &start};
  cudaKernelNodeParams launch{};
  launch.func = (void*)fill;
  launch.gridDim = dim3(blocks);
  launch.blockDim = dim3(block);
  launch.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &alloc, 1, &launch));
  cudaGraphExec_t exec, again;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  bool ok = EXPECT_ERROR(cudaGraphLaunch(exec, nullptr), cudaErrorInvalidValue);  // its memory has not been freed
  cudaGetLastError();

  pausePoint();

  std::vector<int> got(count);
  CHECK(cudaMemcpy(got.data(), values, count * sizeof(int), cudaMemcpyDeviceToHost));
  ok &= same("kept", got, expected(100, 1));
  CHECK(cudaFree(values));
  ok &= EXPECT_ERROR(cudaFree(values), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaFreeAsync(values, nullptr));
  CHECK(cudaGraphExecDestroy(exec));

  // With each launch it frees the memory of the previous one.
  CHECK(cudaGraphInstantiate(&again, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  for (int round = 0; round < 3; ++round) CHECK(cudaGraphLaunch(again, nullptr));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphExecDestroy(again));
  CHECK(cudaMemcpy(got.data(), values, count * sizeof(int), cudaMemcpyDeviceToHost));  // the memory outlives the graph
  ok &= same("outlives", got, expected(100, 1));
  CHECK(cudaFree(values));
  CHECK(cudaDeviceGraphMemTrim(0));
  ok &= EXPECT(amount(cudaGraphMemAttrUsedMemCurrent) == 0);
  return ok;
}

// Memory that a launch allocates is freed by another graph: a graph frees it once, and a graph that is destroyed unlaunched frees nothing.
bool freedElsewhere() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t allocates, unused, frees;
  CHECK(cudaGraphCreate(&allocates, 0));
  cudaMemAllocNodeParams params = memoryNode(count * sizeof(int));
  cudaGraphNode_t node;
  CHECK(cudaGraphAddMemAllocNode(&node, allocates, nullptr, 0, &params));
  cudaGraphExec_t first, second;
  CHECK(cudaGraphInstantiate(&first, allocates, 0));
  CHECK(cudaGraphLaunch(first, stream));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaFreeAsync(params.dptr, stream));
  CHECK(cudaStreamEndCapture(stream, &unused));
  CHECK(cudaGraphDestroy(unused));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  bool ok = EXPECT_ERROR(cudaFreeAsync(params.dptr, stream), cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &frees));
  ok &= EXPECT_ERROR(cudaGraphAddMemFreeNode(&node, frees, nullptr, 0, params.dptr), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaGraphInstantiate(&second, frees, 0));
  CHECK(cudaGraphLaunch(second, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaDeviceGraphMemTrim(0));
  ok &= EXPECT(amount(cudaGraphMemAttrUsedMemCurrent) == 0);
  for (cudaGraphExec_t exec : {first, second}) CHECK(cudaGraphExecDestroy(exec));
  for (cudaGraph_t graph : {allocates, frees}) CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

// A captured allocation refers to a pool, which must be valid, but does not use its memory: the pool's limit does not apply.
bool fromPools() {
  cudaStream_t stream;
  cudaMemPool_t pool, gone;
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.maxSize = size_t{64} << 20;
  CHECK(cudaMemPoolCreate(&pool, &props));
  CHECK(cudaMemPoolCreate(&gone, &props));
  CHECK(cudaMemPoolDestroy(gone));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void *memory = nullptr, *none = nullptr;
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  bool ok = EXPECT_ERROR(cudaMallocFromPoolAsync(&none, 1024, gone, stream), cudaErrorInvalidValue) &
            EXPECT_ERROR(cudaMallocFromPoolAsync(&memory, 2 * props.maxSize, pool, stream), cudaSuccess) & EXPECT(none == nullptr);
  cudaGetLastError();
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t node;
  size_t nodes = 1;
  CHECK(cudaGraphGetNodes(graph, &node, &nodes));
  cudaMemAllocNodeParams params;
  CHECK(cudaGraphMemAllocNodeGetParams(node, &params));
  ok &= EXPECT(nodes == 1) & EXPECT(params.dptr == memory) & EXPECT(params.poolProps.maxSize == 0);
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaMemPoolDestroy(pool));
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

void destroyed(void* data) { ++*static_cast<std::atomic<int>*>(data); }

bool objects() {
  std::atomic<int> first{0}, second{0};
  cudaUserObject_t one, two;
  CHECK(cudaUserObjectCreate(&one, &first, destroyed, 1, cudaUserObjectNoDestructorSync));
  CHECK(cudaUserObjectCreate(&two, &second, destroyed, 2, cudaUserObjectNoDestructorSync));
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphRetainUserObject(graph, one, 1, cudaGraphUserObjectMove));
  CHECK(cudaGraphRetainUserObject(graph, two, 1, 0));
  CHECK(cudaUserObjectRelease(two, 2));
  cudaGraphNode_t node;
  CHECK(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphReleaseUserObject(graph, two, 1));
  bool ok = EXPECT(first == 0) & EXPECT(second == 0);  // the executable graph holds references
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaGraphDestroy(graph));
  ok &= EXPECT(first == 0);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaDeviceSynchronize());
  while (first == 0 || second == 0) usleep(1000);  // one of CUDA's threads calls the destructors
  ok &= EXPECT(first == 1) & EXPECT(second == 1);
  return ok;
}

int main() {
  bool ok = captured();
  ok &= kept();
  ok &= freedElsewhere();
  ok &= fromPools();
  ok &= objects();
  return verdict("graph-memory", ok);
}
