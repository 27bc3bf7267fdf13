// Costs of asynchronous calls for the program, and of graphs with many nodes, one group at a time:
//   posted-calls --bench full|quick GROUP
// The groups are at the end. A call's time is the program's time only; the GPU's work is awaited outside of it.
#include <string>

#include "await-flag.h"
#include "bench.h"

namespace {

constexpr size_t bytes = 4096;

__global__ void nothing(float*) {}
__global__ void work(float* values, int rounds) {
  float value = values[threadIdx.x];
  for (int i = 0; i < rounds; ++i) value = value * 1.0001f + 0.5f;
  values[threadIdx.x] = value;
}

void wait() { CHECK(cudaDeviceSynchronize()); }

// `calls` in each round: too few to block the program on a full stream.
template <typename Body>
void measurePosted(const Bench& bench, const std::string& name, Body body) {
  body();
  wait();
  measure("posted " + name, bench.size(31, 3), bench.size(100, 10), body, wait);
}

// The same while another stream has freed much memory that its pending work may still use.
template <typename Body>
void measureBesideFrees(const Bench& bench, cudaStream_t stream, Body body) {
  cudaStream_t busy;
  CHECK(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
  std::vector<void*> held(bench.size(500, 20));
  for (void*& each : held) CHECK(cudaMallocAsync(&each, bytes, busy));
  CHECK(cudaStreamSynchronize(busy));
  std::atomic<bool> go{false};
  CHECK(cudaLaunchHostFunc(busy, awaitFlag, &go));
  for (void* each : held) CHECK(cudaFreeAsync(each, busy));
  measure("posted allocation and free beside " + std::to_string(held.size()) + " frees of another stream", bench.size(31, 3),
          bench.size(100, 10), body, [&] { CHECK(cudaStreamSynchronize(stream)); });
  go = true;
  CHECK(cudaStreamSynchronize(busy));
  CHECK(cudaStreamDestroy(busy));
}

void measureCalls(const Bench& bench) {
  DeviceArray<char> from(bytes), to(bytes);
  cudaStream_t stream, other;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  measurePosted(bench, "event record", [&] { CHECK(cudaEventRecord(event, stream)); });
  measurePosted(bench, "wait for an event", [&] { CHECK(cudaStreamWaitEvent(other, event, 0)); });
  measurePosted(bench, "fill", [&] { CHECK(cudaMemsetAsync(to, 1, bytes, stream)); });
  measurePosted(bench, "copy on the device", [&] { CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)); });
  measurePosted(bench, "copy of rows on the device",
                [&] { CHECK(cudaMemcpy2DAsync(to, 64, from, 64, 32, 64, cudaMemcpyDeviceToDevice, stream)); });
  const auto allocateAndFree = [&] {
    void* memory;
    CHECK(cudaMallocAsync(&memory, bytes, stream));
    CHECK(cudaFreeAsync(memory, stream));
  };
  measurePosted(bench, "allocation and free in a stream", allocateAndFree);
  measureBesideFrees(bench, stream, allocateAndFree);
  measurePosted(bench, "creation and end of an event", [&] {
    cudaEvent_t fresh;
    CHECK(cudaEventCreateWithFlags(&fresh, cudaEventDisableTiming));
    CHECK(cudaEventDestroy(fresh));
  });
}

// Captures the work of `body` in a stream; instantiates the graph.
template <typename Body>
cudaGraphExec_t captured(cudaStream_t stream, Body body) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  body();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphUpload(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  return executable;
}

// The time of the call alone, and the GPU's time per launch in a sequence of launches, measured with events.
void measureGraph(const Bench& bench, const std::string& what, cudaGraphExec_t graph, cudaStream_t stream) {
  const auto launch = [&] { CHECK(cudaGraphLaunch(graph, stream)); };
  const int many = bench.size(200, 10);
  launch();
  wait();
  measure("call that launches a graph of " + what, bench.size(31, 3), bench.size(20, 5), launch, wait);
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<double> times;
  for (int round = 0; round < bench.size(15, 2); ++round) {
    float milliseconds;
    CHECK(cudaEventRecord(begin, stream));
    for (int i = 0; i < many; ++i) launch();
    CHECK(cudaEventRecord(end, stream));
    wait();
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    times.push_back(1000.0 * milliseconds / many);
  }
  printFigure("execution of a graph of " + what, "us", median(times));
  CHECK(cudaGraphExecDestroy(graph));
}

void measureGraphs(const Bench& bench) {
  DeviceArray<float> values(256);
  cudaStream_t stream;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  std::vector<float> pageable(256, 1);
  for (int kernels : {1, 20, 200}) {
    auto some = [&] {
      for (int i = 0; i < kernels; ++i) nothing<<<1, 32, 0, stream>>>(values);
    };
    measureGraph(bench, std::to_string(kernels) + (kernels == 1 ? " kernel" : " kernels"), captured(stream, some), stream);
  }
  auto busy = [&] {
    for (int i = 0; i < 20; ++i) work<<<1, 256, 0, stream>>>(values, bench.size(2000, 10));
  };
  measureGraph(bench, "20 kernels of 10 us", captured(stream, busy), stream);
  auto mixed = [&] {
    CHECK(cudaMemcpyAsync(values, pageable.data(), bytes / 4, cudaMemcpyHostToDevice, stream));
    busy();
    CHECK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    CHECK(cudaLaunchHostFunc(stream, [](void*) {}, nullptr));
  };
  measureGraph(bench, "these, a pageable copy, an event and a host function", captured(stream, mixed), stream);
}

constexpr Group groups[] = {{"posted", measureCalls}, {"graphs", measureGraphs}};

}  // namespace

int main(int argc, char** argv) { return runGroup(argc, argv, "posted-calls", groups); }
