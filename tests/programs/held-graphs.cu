// Graphs that are destroyed while their launches wait for a word that the destroying thread writes next: their destruction does not wait
// for the device, and resources of launches live until these have run. An error of earlier work is left for the call that reports it.
#include "exported-entry.h"

namespace {

constexpr int count = 1 << 12;
constexpr size_t bytes = count * sizeof(int);

__global__ void fill(int* values, int start) { values[threadIdx.x] = start + threadIdx.x; }
__global__ void copyWords(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }

// A stream that waits until the word is written.
class Held {
 public:
  Held() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  }
  ~Held() {
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(other));
  }
  bool hold() { return hold(stream); }
  bool hold(cudaStream_t any) { return WORKS(cuStreamWaitValue32_v2, any, address(), ++held, CU_STREAM_WAIT_VALUE_GEQ); }
  bool open() {
    bool ok = WORKS(cuStreamWriteValue32_v2, other, address(), held, 0);
    CHECK(cudaStreamSynchronize(stream));
    return ok;
  }

  cudaStream_t stream = nullptr, other = nullptr;

 private:
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(static_cast<int*>(word)); }

  DeviceArray<int> word{std::vector<int>{0}};
  unsigned held = 0;
};

// A captured graph and its executable graph, made before a stream is held, because that may wait.
struct Made {
  template <typename Work>
  explicit Made(Work work, cudaUserObject_t object = nullptr) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work(stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaStreamDestroy(stream));
    if (object != nullptr) CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }
  void end() {
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }
  void launchAndEnd(cudaStream_t stream) {
    CHECK(cudaGraphLaunch(exec, stream));
    end();
  }

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
};

std::vector<int> filled(int start) {
  std::vector<int> values(32);
  for (int i = 0; i < 32; ++i) values[i] = start + i;
  return values;
}

// Allocates the same amount of memory and writes other bytes to it, which would overwrite a destroyed graph's memory.
void useMemory(cudaStream_t stream) {
  void* memory;
  CHECK(cudaMallocAsync(&memory, bytes, stream));
  CHECK(cudaMemsetAsync(memory, 0x55, bytes, stream));
  CHECK(cudaFreeAsync(memory, stream));
  CHECK(cudaStreamSynchronize(stream));
}

bool endsWithItsMemory(Held& held) {
  DeviceArray<int> out(32);
  Made made([&](cudaStream_t stream) {
    int* memory;
    CHECK(cudaMallocAsync(reinterpret_cast<void**>(&memory), bytes, stream));
    fill<<<1, 32, 0, stream>>>(memory, 7);
    copyWords<<<1, 32, 0, stream>>>(out, memory);
    CHECK(cudaFreeAsync(memory, stream));
  });
  bool ok = held.hold();
  made.launchAndEnd(held.stream);
  useMemory(held.other);
  return held.open() & ok & same("out of a graph's memory", out.download(), filled(7));
}

// The launch leaves the memory to the program, which frees it in the stream.
bool leavesMemory(Held& held) {
  DeviceArray<int> out(32);
  int* memory = nullptr;
  Made made([&](cudaStream_t stream) {
    CHECK(cudaMallocAsync(reinterpret_cast<void**>(&memory), bytes, stream));
    fill<<<1, 32, 0, stream>>>(memory, 9);
  });
  bool ok = held.hold();
  made.launchAndEnd(held.stream);
  copyWords<<<1, 32, 0, held.stream>>>(out, memory);
  CHECK(cudaFreeAsync(memory, held.stream));
  ok &= EXPECT_ERROR(cudaFreeAsync(memory, held.stream), cudaErrorInvalidValue);
  cudaGetLastError();
  useMemory(held.other);
  return held.open() & ok & same("out of memory that a graph left", out.download(), filled(9));
}

bool endsWithItsCopies(Held& held) {
  DeviceArray<int> values(32);
  std::vector<int> in = filled(11), out(32);
  Made made([&](cudaStream_t stream) {
    CHECK(cudaMemcpyAsync(values, in.data(), 32 * sizeof(int), cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(out.data(), values, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream));
  });
  bool ok = held.hold();
  made.launchAndEnd(held.stream);
  return held.open() & ok & same("copied there and back", out, filled(11));
}

// The object's destructor runs after the launches, and may wait for the program.
bool endsWithItsObjects(Held& held) {
  struct State {
    std::atomic<bool> ends{false}, ended{false};
  } state;
  auto destroy = [](void* data) {
    auto& state = *static_cast<State*>(data);
    while (!state.ends) usleep(100);
    state.ended = true;
  };
  cudaUserObject_t object;
  CHECK(cudaUserObjectCreate(&object, &state, destroy, 1, cudaUserObjectNoDestructorSync));
  DeviceArray<int> out(32);
  Made made([&](cudaStream_t stream) { fill<<<1, 32, 0, stream>>>(out, 13); }, object);
  bool ok = held.hold();
  made.launchAndEnd(held.stream);
  ok &= EXPECT(!state.ended) & held.open();
  state.ends = true;
  while (!state.ended) usleep(100);
  return ok & same("filled", out.download(), filled(13));
}

// The stream of the last launch is destroyed before the graph.
bool outlivesItsStream(Held& held) {
  DeviceArray<int> out(32);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Made made([&](cudaStream_t in) {
    int* memory;
    CHECK(cudaMallocAsync(reinterpret_cast<void**>(&memory), bytes, in));
    fill<<<1, 32, 0, in>>>(memory, 15);
    copyWords<<<1, 32, 0, in>>>(out, memory);
    CHECK(cudaFreeAsync(memory, in));
  });
  bool ok = held.hold(stream);
  CHECK(cudaGraphLaunch(made.exec, stream));
  CHECK(cudaStreamDestroy(stream));
  made.end();
  useMemory(held.other);
  ok &= held.open();
  CHECK(cudaDeviceSynchronize());
  return ok & same("launched into a stream that has ended", out.download(), filled(15));
}

// An operation that the driver refuses: natively at once, in a session by the next call that waits.
bool leavesErrors(Held& held) {
  std::vector<int> in = filled(1);
  DeviceArray<int> values(32);
  Made made([&](cudaStream_t stream) {
    CHECK(cudaMemcpyAsync(values, in.data(), 32 * sizeof(int), cudaMemcpyHostToDevice, stream));
  });
  CHECK(cudaGraphLaunch(made.exec, held.stream));
  CHECK(cudaStreamSynchronize(held.stream));
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = reinterpret_cast<CUdeviceptr>(static_cast<int*>(values));
  operation.waitValue.flags = 1u << 20;
  CUresult refused = ENTRY(cuStreamBatchMemOp_v2)(held.stream, 1, &operation, 0);
  made.end();
  if (refused == CUDA_SUCCESS) refused = static_cast<CUresult>(cudaDeviceSynchronize());
  cudaGetLastError();
  CHECK(cudaDeviceSynchronize());
  return EXPECT(refused == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
  alarm(60);
  loadKernel(fill);
  loadKernel(copyWords);
  bool ok = true;
  for (int round = 0; round < 2; ++round) {
    Held held;
    ok &= endsWithItsMemory(held) & leavesMemory(held) & endsWithItsCopies(held) & endsWithItsObjects(held);
    ok &= outlivesItsStream(held) & leavesErrors(held);
    if (round == 0) pausePoint();
  }
  CHECK(cudaDeviceGraphMemTrim(0));
  return verdict("held-graphs", ok);
}
