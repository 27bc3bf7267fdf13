// Built with the headers and the runtime of CUDA 12: tests functions and structures that CUDA 13 has changed under the same name or
// removed. Each structure that is larger in CUDA 13 is followed by bytes that must not change.
#include <cstring>

#include "program.h"

static_assert(CUDART_VERSION >= 12090 && CUDART_VERSION < 13000, "this program is of CUDA 12.9");

constexpr unsigned count = 4096;

__global__ void scaleBy(float* data, float factor) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

__global__ void readTexture(cudaTextureObject_t texture, float* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = tex1Dfetch<float>(texture, int(i));
}

template <class T>
struct Guarded {
  T value{};
  unsigned char behind[160];
  Guarded() { std::memset(behind, 0xa5, sizeof behind); }
  bool isWhole() const {
    for (unsigned char each : behind)
      if (each != 0xa5) return false;
    return true;
  }
};

bool holds(const char* what, const float* data, float value) {
  std::vector<float> got(count), want(count, value);
  CHECK(cudaMemcpy(got.data(), data, count * sizeof(float), cudaMemcpyDeviceToHost));
  return same(what, got, want);
}

bool tryDevice() {
  int version = 0, device = -1, clock = 0, mode = -1, blocks = 0, nodes = -1;
  CHECK(cudaRuntimeGetVersion(&version));
  bool ok = EXPECT(version == CUDART_VERSION);
  Guarded<cudaDeviceProp> properties;
  CHECK(cudaGetDeviceProperties(&properties.value, 0));
  CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0));
  CHECK(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, 0));
  CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMaxBlocksPerMultiprocessor, 0));
  CHECK(cudaDeviceGetAttribute(&nodes, cudaDevAttrMultiProcessorCount, 0));
  ok &= EXPECT(properties.isWhole()) & EXPECT(properties.value.name[0] != 0) & EXPECT(properties.value.warpSize == 32);
  ok &= EXPECT(properties.value.clockRate == clock) & EXPECT(properties.value.computeMode == mode);
  ok &= EXPECT(properties.value.maxBlocksPerMultiProcessor == blocks) & EXPECT(properties.value.multiProcessorCount == nodes);
  ok &= EXPECT(properties.value.maxThreadsPerBlock == 1024) & EXPECT(properties.value.unifiedAddressing == 1);
  ok &= EXPECT(properties.value.memoryPoolsSupported == 1);
  ok &= EXPECT_ERROR(cudaGetDeviceProperties(nullptr, 0), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaGetDeviceProperties(&properties.value, 1000), cudaErrorInvalidDevice);
  cudaDeviceProp wanted{};
  wanted.major = properties.value.major;
  CHECK(cudaChooseDevice(&device, &wanted));
  ok &= EXPECT(device >= 0);
  cudaGetLastError();
  size_t stack = 0, same = 1;
  CHECK(cudaThreadGetLimit(&stack, cudaLimitStackSize));
  CHECK(cudaDeviceGetLimit(&same, cudaLimitStackSize));
  CHECK(cudaThreadSynchronize());
  return ok & EXPECT(stack == same);
}

bool tryMemory(float* data) {
  Guarded<cudaPointerAttributes> attributes;
  CHECK(cudaPointerGetAttributes(&attributes.value, data));
  bool ok = EXPECT(attributes.isWhole()) & EXPECT(attributes.value.type == cudaMemoryTypeDevice);
  ok &= EXPECT(attributes.value.devicePointer == data) & EXPECT(attributes.value.device == 0);
  int concurrent = 0;
  CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  if (concurrent == 0) return ok;  // advice and prefetches are then refused
  float* managed = nullptr;
  CHECK(cudaMallocManaged(&managed, count * sizeof *managed));
  for (unsigned i = 0; i < count; ++i) managed[i] = 3;
  CHECK(cudaMemAdvise(managed, count * sizeof *managed, cudaMemAdviseSetReadMostly, 0));
  CHECK(cudaMemAdvise(managed, count * sizeof *managed, cudaMemAdviseUnsetReadMostly, 0));
  CHECK(cudaMemAdvise(managed, count * sizeof *managed, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId));
  CHECK(cudaMemAdvise(managed, count * sizeof *managed, cudaMemAdviseUnsetPreferredLocation, 0));
  CHECK(cudaMemPrefetchAsync(managed, count * sizeof *managed, 0, nullptr));
  scaleBy<<<count / 256, 256>>>(managed, 2);
  CHECK(cudaMemPrefetchAsync(managed, count * sizeof *managed, cudaCpuDeviceId, nullptr));
  CHECK(cudaMemPrefetchAsync_v2(managed, count * sizeof *managed, {cudaMemLocationTypeDevice, 0}, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  ok &= EXPECT(managed[0] == 6 && managed[count - 1] == 6);
  CHECK(cudaFree(managed));
  return ok;
}

bool tryTexture(float* data, float* out) {
  Guarded<cudaResourceDesc> resource, known;
  resource.value.resType = cudaResourceTypeLinear;
  resource.value.res.linear = {data, cudaCreateChannelDesc<float>(), count * sizeof(float)};
  cudaTextureDesc how{};
  how.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource.value, &how, nullptr));
  readTexture<<<count / 256, 256>>>(texture, out);
  CHECK(cudaGetLastError());
  CHECK(cudaGetTextureObjectResourceDesc(&known.value, texture));
  bool ok = EXPECT(known.isWhole()) & EXPECT(known.value.res.linear.devPtr == data);
  ok &= EXPECT(known.value.res.linear.sizeInBytes == count * sizeof(float));
  CHECK(cudaDestroyTextureObject(texture));
  return ok;
}

// Without edge data, and with it.
bool tryGraph(float* data, cudaStream_t stream) {
  cudaGraph_t graph, captured;
  cudaGraphNode_t first, second;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddEmptyNode(&first, graph, nullptr, 0));
  CHECK(cudaGraphAddEmptyNode(&second, graph, nullptr, 0));
  CHECK(cudaGraphAddDependencies(graph, &first, &second, 1));
  cudaGraphNode_t from = nullptr, to = nullptr, node = nullptr;
  size_t edges = 1;
  CHECK(cudaGraphGetEdges(graph, &from, &to, &edges));
  bool ok = EXPECT(edges == 1 && from == first && to == second);
  edges = 1;
  CHECK(cudaGraphNodeGetDependencies(second, &node, &edges));
  ok &= EXPECT(edges == 1 && node == first);
  cudaGraphEdgeData data2{};
  edges = 1;
  CHECK(cudaGraphNodeGetDependentNodes_v2(first, &node, &data2, &edges));
  ok &= EXPECT(edges == 1 && node == second && data2.type == 0);
  CHECK(cudaGraphRemoveDependencies(graph, &first, &second, 1));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, &edges));
  ok &= EXPECT(edges == 0);
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeEmpty;
  CHECK(cudaGraphAddNode(&node, graph, &second, 1, &parameters));
  CHECK(cudaGraphDestroy(graph));

  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* nodes = nullptr;
  unsigned long long id = 0;
  size_t there = 0;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  scaleBy<<<count / 256, 256, 0, stream>>>(data, 2);
  CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, &captured, &nodes, &there));
  ok &= EXPECT(status == cudaStreamCaptureStatusActive && id != 0 && there == 1);
  CHECK(cudaStreamUpdateCaptureDependencies(stream, nullptr, 0, cudaStreamSetCaptureDependencies));
  CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, &captured, &nodes, &there));
  ok &= EXPECT(there == 0);
  CHECK(cudaStreamEndCapture(stream, &captured));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, captured, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(captured));
  return ok;
}

bool tryEntries() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPoint("cuMemAdvise", &entry, cudaEnableDefault, &found));
  return EXPECT(found == cudaDriverEntryPointSuccess && entry != nullptr);
}

// A cooperative launch on a list of devices, here of one.
bool tryTogether(float* data, cudaStream_t stream) {
  float factor = 0.5f;
  void* arguments[] = {&data, &factor};
  cudaLaunchParams launch{reinterpret_cast<void*>(scaleBy), dim3(count / 256), dim3(256), arguments, 0, stream};
  CHECK(cudaLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
  CHECK(cudaStreamSynchronize(stream));
  return EXPECT_ERROR(cudaLaunchCooperativeKernelMultiDevice(&launch, 0, 0), cudaErrorInvalidValue) & holds("scaled back", data, 2);
}

int main() {
  bool ok = tryDevice();
  float *data, *out;
  cudaStream_t stream;
  cudaEvent_t before, after;
  CHECK(cudaMalloc(&data, count * sizeof *data));
  CHECK(cudaMalloc(&out, count * sizeof *out));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&before));
  CHECK(cudaEventCreate(&after));
  std::vector<float> ones(count, 1);
  CHECK(cudaMemcpy(data, ones.data(), count * sizeof *data, cudaMemcpyHostToDevice));
  CHECK(cudaEventRecord(before, stream));
  ok &= tryGraph(data, stream);
  CHECK(cudaEventRecord(after, stream));

  pausePoint();
  ok &= holds("what the graph has scaled", data, 2);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, before, after));
  ok &= EXPECT(milliseconds >= 0);
  ok &= tryGraph(data, stream) & holds("and again", data, 4);
  ok &= tryDevice() & tryMemory(data) & tryTexture(data, out) & tryEntries();
  ok &= holds("what a texture reads", out, 4);
  ok &= tryTogether(data, stream);
  CHECK(cudaEventDestroy(before));
  CHECK(cudaEventDestroy(after));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(data));
  CHECK(cudaFree(out));
  return verdict("cuda12", ok);
}
