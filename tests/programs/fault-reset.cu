// A kernel fault ends the context for every thread and stream, and the contexts of the process's other devices; cudaDeviceReset gives the
// program a new one, in which everything works again. Repeated several times, with copies behind the fault that are never executed and must
// leave nothing behind.
#include <thread>

#include "await-flag.h"
#include "in-session.h"
#include "memory-node.h"
#include "program.h"

__device__ int counter = 7;

__global__ void storeAt(int* address) { *address = 1; }
__global__ void count(int* seen) { *seen = ++counter; }
__global__ void fill(int* data, int first) { data[threadIdx.x] = first + threadIdx.x; }

namespace {

// Which status a callback behind the fault gets, and whether a host function there is called.
struct Behind {
  std::atomic<int> told{-1};
  std::atomic<bool> called{false};

  void add(cudaStream_t stream) {
    CHECK(cudaLaunchHostFunc(stream, [](void* behind) { static_cast<Behind*>(behind)->called = true; }, this));
    CHECK(cudaStreamAddCallback(
        stream, [](cudaStream_t, cudaError_t status, void* behind) { static_cast<Behind*>(behind)->told = status; }, this, 0));
  }
  bool isToldAlone() const {
    while (told == -1) usleep(100);
    return EXPECT(told == cudaErrorIllegalAddress) & EXPECT(!called);
  }
};

// Causes a fault while one thread waits for its stream, and checks every call that returns it.
bool faultAndAsk() {
  constexpr int copies = 20, copied = 8192;
  std::atomic<bool> go{false};
  cudaStream_t stream, other;
  cudaEvent_t event;
  int* data;
  cudaArray_t array;
  constexpr int row = 256 * sizeof(int), rows = copied / 256;
  const cudaChannelFormatDesc ofInts = cudaCreateChannelDesc<int>();
  const std::vector<int> values(copied, 1);
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMalloc(&data, copied * sizeof(int)));
  CHECK(cudaMallocArray(&array, &ofInts, 256, rows));

  // A driver may make a copy wait for its stream; the fault then happens before the last copies, which return it.
  CHECK(cudaLaunchHostFunc(stream, awaitFlag, &go));
  std::atomic<bool> posted{false};
  std::thread opener([&] {
    for (int i = 0; i < 5000 && !posted; ++i) usleep(100);
    go = true;
  });
  cudaError_t seenByWaiter = cudaSuccess;
  storeAt<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(uintptr_t(0x7000000000000)));
  Behind behind;
  behind.add(stream);
  std::thread waiter([&] { seenByWaiter = cudaStreamSynchronize(stream); });
  bool ok = true;
  for (int i = 0; i < copies; ++i) {
    const auto toMemory = cudaMemcpyAsync(data, values.data(), copied * sizeof(int), cudaMemcpyHostToDevice, stream);
    const auto toArray =
        cudaMemcpy2DToArrayAsync(array, 0, 0, values.data(), row, row, rows, cudaMemcpyHostToDevice, stream);
    for (auto result : {toMemory, toArray}) ok &= EXPECT(result == cudaSuccess || result == cudaErrorIllegalAddress);
  }
  cudaEventRecord(event, stream);
  posted = true;

  ok &= EXPECT_ERROR(cudaEventSynchronize(event), cudaErrorIllegalAddress);
  opener.join();
  waiter.join();
  int* fresh;
  ok &= EXPECT_ERROR(seenByWaiter, cudaErrorIllegalAddress) &
        EXPECT_ERROR(cudaStreamQuery(stream), cudaErrorIllegalAddress) &
        EXPECT_ERROR(cudaEventQuery(event), cudaErrorIllegalAddress) &
        EXPECT_ERROR(cudaStreamSynchronize(other), cudaErrorIllegalAddress) &
        EXPECT_ERROR(cudaMalloc(&fresh, 4), cudaErrorIllegalAddress) &
        EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  ok &= behind.isToldAlone();
  CHECK(cudaDeviceReset());
  cudaGetLastError();
  return ok;
}

// Checks that the device works: memory, a module's variable with its initial value, streams, events, copies in both directions.
bool works(int round) {
  DeviceArray<int> data(256), seen(1);
  cudaStream_t stream;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  fill<<<1, 256, 0, stream>>>(data, round);
  count<<<1, 1, 0, stream>>>(seen);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaEventSynchronize(event));
  CHECK(cudaStreamQuery(stream));
  std::vector<int> expected(256);
  for (int i = 0; i < 256; ++i) expected[i] = round + i;
  const bool ok = same("filled after a reset", data.download(), expected) & same("counter", seen.download(), {8});
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

// A graph's memory ends with the context, and the graph does not free memory allocated at its address afterwards. Only a session specifies
// the behaviour of a destroyed context's graph.
bool leavesNewMemoryToTheProgram() {
  if (!inSession) return true;
  constexpr size_t bytes = 4096;
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams params = memoryNode(bytes);
  cudaGraphNode_t node;
  CHECK(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  storeAt<<<1, 1>>>(reinterpret_cast<int*>(uintptr_t(0x7000000000000)));
  bool ok = EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  CHECK(cudaDeviceReset());
  cudaGetLastError();
  void *memory, *other;
  CHECK(cudaMalloc(&memory, bytes));
  cudaGraphExec_t exec;
  ok &= EXPECT_ERROR(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaMalloc(&other, bytes));
  ok &= EXPECT(other != memory) & EXPECT_ERROR(cudaFree(memory), cudaSuccess) & EXPECT_ERROR(cudaFree(other), cudaSuccess);
  unsigned long long reserved = 1;
  CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved));
  return ok & EXPECT(reserved == 0);
}

// The state of another device of the same program, if there is one: a fault ends the contexts of all devices of a process, each until it is
// reset.
class Neighbour {
 public:
  Neighbour() {
    CHECK(cudaGetDeviceCount(&devices));
    if (devices < 2) return;
    CHECK(cudaSetDevice(1));
    make();
    CHECK(cudaSetDevice(0));
  }
  bool isLostUntilReset() {
    if (devices < 2) return true;
    CHECK(cudaSetDevice(1));
    int* fresh;
    bool ok = EXPECT_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress) &
              EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress) &
              EXPECT_ERROR(cudaMalloc(&fresh, 4), cudaErrorIllegalAddress);
    CHECK(cudaDeviceReset());
    cudaGetLastError();
    make();
    return ok & isAsItWas();
  }
  bool isAsItWas() {
    if (devices < 2) return true;
    CHECK(cudaSetDevice(1));
    int seen[256];
    CHECK(cudaMemcpyAsync(seen, data, sizeof seen, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaSetDevice(0));
    return EXPECT(seen[0] == 500 && seen[255] == 755);
  }

 private:
  void make() {
    CHECK(cudaMalloc(&data, 256 * sizeof(int)));
    CHECK(cudaStreamCreate(&stream));
    fill<<<1, 256, 0, stream>>>(data, 500);
    CHECK(cudaGetLastError());
  }

  int devices = 0;
  int* data = nullptr;
  cudaStream_t stream = nullptr;
};

}  // namespace

int main() {
  Neighbour neighbour;
  int* pinned;
  CHECK(cudaMallocHost(&pinned, 1 << 20));  // ends with the context in which it was made
  bool ok = true;
  for (int round = 0; round < 4; ++round) ok &= faultAndAsk() & works(round) & neighbour.isLostUntilReset();
  ok &= leavesNewMemoryToTheProgram() & neighbour.isLostUntilReset();

  // Objects made after a reset survive a pause like any others.
  CHECK(cudaDeviceReset());
  DeviceArray<int> kept(256), seen(1);
  CHECK(cudaMallocHost(&pinned, 256 * sizeof(int)));
  fill<<<1, 256>>>(kept, 1000);
  count<<<1, 1>>>(seen);
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  count<<<1, 1>>>(seen);
  CHECK(cudaMemcpy(pinned, kept, 256 * sizeof(int), cudaMemcpyDeviceToHost));
  ok &= EXPECT(pinned[0] == 1000 && pinned[255] == 1255) & same("counter after the pause", seen.download(), {9}) &
        neighbour.isAsItWas();
  return verdict("fault-reset", ok);
}
