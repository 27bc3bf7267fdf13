// Events that two processes share: each process records an event and the other's stream waits for it; neither process waits for its GPU.
#include "driver-entry.h"
#include "processes.h"

constexpr int rounds = 20;

// Adds one to `word` after a delay, so that a stream that does not wait for it reads the old value.
__global__ void addSlowly(volatile unsigned* word, unsigned turns) {
  unsigned sum = 0;
  for (unsigned i = 0; i < turns; ++i) sum = sum * 3 + i;
  *word = *word + 1 + (sum == 1 ? 1000 : 0);
}

struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t mine, yours;  // recorded by the parent and by the child
};

unsigned turns() { return 20000; }

// In each round both add one, the child first, behind the parent's record.
int child(const Peer& parent) {
  const auto handles = parent.receive<Handles>();
  void* memory = nullptr;
  cudaEvent_t theirs, ours;
  CHECK(cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess));
  CHECK(cudaIpcOpenEventHandle(&theirs, handles.mine));
  CHECK(cudaIpcOpenEventHandle(&ours, handles.yours));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  auto* word = static_cast<unsigned*>(memory);
  for (int round = 0; round < rounds; ++round) {
    parent.receive<char>();  // the parent has recorded
    CHECK(cudaStreamWaitEvent(stream, theirs, 0));
    addSlowly<<<1, 1, 0, stream>>>(word, turns());
    CHECK(cudaEventRecord(ours, stream));
    parent.send('.');
  }
  CHECK(cudaEventSynchronize(ours));
  CHECK(cudaStreamSynchronize(stream));
  bool ok = EXPECT_ERROR(cudaEventQuery(ours), cudaSuccess);
  float milliseconds;
  ok &= EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, theirs, ours), cudaErrorInvalidResourceHandle);
  cudaIpcEventHandle_t wrong = handles.mine;
  cudaEvent_t none;
  wrong.reserved[9] ^= 1;
  ok &= EXPECT(cudaIpcOpenEventHandle(&none, wrong) != cudaSuccess);
  cudaGetLastError();
  CHECK(cudaEventDestroy(theirs));
  CHECK(cudaEventDestroy(ours));
  CHECK(cudaIpcCloseMemHandle(memory));
  parent.meet();
  return ok ? 0 : 1;
}

cudaEvent_t sharedEvent() {
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  return event;
}

bool refuseWrongUses(cudaEvent_t shared) {
  cudaEvent_t event, plain;
  cudaIpcEventHandle_t handle;
  bool ok = EXPECT_ERROR(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
  CHECK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
  ok &= EXPECT(cudaIpcGetEventHandle(&handle, plain) != cudaSuccess);
  CHECK(cudaEventDestroy(plain));
  CHECK(cudaIpcGetEventHandle(&handle, shared));
  ok &= EXPECT(cudaIpcOpenEventHandle(&event, handle) != cudaSuccess);  // in the process that made it
  cudaGetLastError();
  return ok;
}

int parent() {
  int supported = 0;
  CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrIpcEventSupport, 0));
  bool ok = EXPECT(supported == 1);
  unsigned* word;
  CHECK(cudaMalloc(&word, sizeof *word));
  CHECK(cudaMemset(word, 0, sizeof *word));
  cudaEvent_t mine = sharedEvent(), yours = sharedEvent();
  ok &= refuseWrongUses(mine);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaDeviceSynchronize());

  Handles handles;
  CHECK(cudaIpcGetMemHandle(&handles.memory, word));
  CHECK(cudaIpcGetEventHandle(&handles.mine, mine));
  CHECK(cudaIpcGetEventHandle(&handles.yours, yours));
  Child other("child");
  other.send(handles);
  for (int round = 0; round < rounds; ++round) {
    addSlowly<<<1, 1, 0, stream>>>(word, turns());
    CHECK(cudaEventRecord(mine, stream));
    other.send('.');
    other.receive<char>();  // the child has recorded
    CHECK(cudaStreamWaitEvent(stream, yours, 0));
  }
  CHECK(cudaEventSynchronize(yours));
  unsigned sum = 0;
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&sum, word, sizeof sum, cudaMemcpyDeviceToHost));
  ok &= same("rounds", std::vector<unsigned>{sum}, {2 * rounds});
  other.meet();
  ok &= EXPECT(other.ended());

  pausePoint();
  ok &= EXPECT_ERROR(cudaEventQuery(mine), cudaSuccess);
  CHECK(cudaEventRecord(mine, stream));
  CHECK(cudaEventSynchronize(mine));
  cudaIpcEventHandle_t again;
  CHECK(cudaIpcGetEventHandle(&again, mine));
  ok &= EXPECT(std::memcmp(&again, &handles.mine, sizeof again) == 0);
  CHECK(cudaEventDestroy(mine));
  CHECK(cudaEventDestroy(yours));
  CHECK(cudaFree(word));
  return verdict("ipc-events", ok);
}

int main(int argc, char** argv) { return isChild(argc, argv, "child") ? child(parentOf(argv)) : parent(); }
