// Graphs whose kernels may begin before the previous kernel has ended: edges with ports, explicit and captured, launched before and after a
// suspend.
#include "kernel-node.h"
#include "program.h"

// Allows the next kernel to begin, and records whether it began before this one's write: this is not guaranteed, so it is only printed.
__global__ void produce(int* values, int* begun, int rounds) {
  cudaTriggerProgrammaticLaunchCompletion();
  bool overlapped = false;
  for (int i = 0; i < rounds && !overlapped; ++i) overlapped = atomicAdd(begun, 0) != 0;
  values[0] += 1;
  values[3] += overlapped;
}
// Waits itself for the previous kernel.
__global__ void consume(int* values, int* begun, int) {
  atomicAdd(begun, 1);
  cudaGridDependencySynchronize();
  values[1] += 10 * values[0];
}
__global__ void finish(int* values, int* begun, int rounds) {
  values[2] = values[1] + rounds;
  *begun = 0;
}

constexpr int rounds = 2000;
static int *values, *begun;

static void join(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to, unsigned port) {
  cudaGraphEdgeData data{};
  data.from_port = static_cast<unsigned char>(port);
  data.type = cudaGraphDependencyTypeProgrammatic;
  CHECK(cudaGraphAddDependencies(graph, &from, &to, &data, 1));
}

// Launches the graph after `launches` others and checks the result.
static bool adds(cudaGraphExec_t graph, cudaStream_t stream, int launches, const char* what) {
  int found[4] = {}, wanted = 0;
  CHECK(cudaGraphLaunch(graph, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(found, values, sizeof found, cudaMemcpyDefault));
  for (int i = 1; i <= launches + 1; ++i) wanted += 10 * i;
  if (found[0] == launches + 1 && found[1] == wanted && found[2] == wanted + rounds) return true;
  fprintf(stderr, "%s, launch %d: %d, %d and %d are there\n", what, launches + 1, found[0], found[1], found[2]);
  return false;
}

static void launch(cudaStream_t stream, void (*kernel)(int*, int*, int)) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = kernel == consume;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, kernel, values, begun, rounds));
}

int main() {
  cudaStream_t stream;
  cudaGraph_t given, captured;
  cudaGraphExec_t ofGiven, ofCaptured;
  CHECK(cudaMalloc(&values, 4 * sizeof(int)));
  CHECK(cudaMalloc(&begun, sizeof(int)));
  CHECK(cudaMemset(begun, 0, sizeof(int)));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  CHECK(cudaGraphCreate(&given, 0));
  auto first = addKernel(given, {}, produce, values, begun, rounds), second = addKernel(given, {}, consume, values, begun, rounds);
  auto last = addKernel(given, {second}, finish, values, begun, rounds);
  join(given, first, second, cudaGraphKernelNodePortProgrammatic);
  CHECK(cudaGraphAddDependencies(given, &first, &last, nullptr, 1));
  CHECK(cudaGraphInstantiate(&ofGiven, given, 0));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (auto kernel : {produce, consume, finish}) launch(stream, kernel);
  CHECK(cudaStreamEndCapture(stream, &captured));
  CHECK(cudaGraphInstantiate(&ofCaptured, captured, 0));

  int overlapped = 0;
  CHECK(cudaMemset(values, 0, 4 * sizeof(int)));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 3; ++i)
    if (!adds(ofGiven, stream, i, "given")) return 1;
  pausePoint();
  for (int i = 3; i < 6; ++i)
    if (!adds(i % 2 != 0 ? ofCaptured : ofGiven, stream, i, "given or captured")) return 1;
  CHECK(cudaMemcpy(&overlapped, values + 3, sizeof overlapped, cudaMemcpyDefault));
  printf("%d of 6 began before the one before had ended\n", overlapped);

  // It can still be updated from the graph that it was instantiated from, including ports.
  cudaGraphExecUpdateResultInfo info{};
  CHECK(cudaGraphExecUpdate(ofGiven, given, &info));
  return 0;
}
