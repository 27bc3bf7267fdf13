// A program of three processes that is suspended while they share memory, events and a pool allocation with one child, and physical memory
// with another, which has mapped it twice and is the only one that still has it. Afterwards everything works as before: each reads what the
// other writes, and waits for what the other has recorded.
#include "driver-entry.h"
#include "exportable-pool.h"
#include "processes.h"
#include "shared-physical.h"

constexpr unsigned count = 5000, rounds = 6;

__global__ void addTo(unsigned* data, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) data[i] += value;
}

// Adds one to `word` after a delay, so that a stream that does not wait for it reads the old value.
__global__ void addSlowly(volatile unsigned* word, unsigned turns) {
  unsigned sum = 0;
  for (unsigned i = 0; i < turns; ++i) sum = sum * 3 + i;
  *word = *word + 1 + (sum == 1 ? 1000 : 0);
}

void add(unsigned* data, unsigned value) {
  addTo<<<8, 128>>>(data, value);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

bool holds(const char* what, const unsigned* data, unsigned value) {
  std::vector<unsigned> got(count);
  CHECK(cudaMemcpy(got.data(), data, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  return same(what, got, std::vector<unsigned>(count, value));
}

unsigned* open(const cudaIpcMemHandle_t& handle) {
  void* memory = nullptr;
  CHECK(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  return static_cast<unsigned*>(memory);
}

// ------------------------------------------------------------------ memory, events, a pool

struct Handles {
  cudaIpcMemHandle_t memory, word;
  cudaIpcEventHandle_t mine, yours;  // recorded by the parent and by the child
  cudaMemPoolPtrExportData pooled;
};

void addInTurn(const Peer& other, cudaStream_t stream, unsigned* word, cudaEvent_t before, cudaEvent_t after) {
  for (unsigned round = 0; round < rounds; ++round) {
    other.receive<char>();  // the other process has recorded
    CHECK(cudaStreamWaitEvent(stream, before, 0));
    addSlowly<<<1, 1, 0, stream>>>(word, 20000);
    CHECK(cudaEventRecord(after, stream));
    other.send('.');
  }
}

int holder(const Peer& parent, int descriptor) {
  cudaMemPool_t pool;
  void* passed = reinterpret_cast<void*>(intptr_t(descriptor));
  CHECK(cudaMemPoolImportFromShareableHandle(&pool, passed, cudaMemHandleTypePosixFileDescriptor, 0));
  close(descriptor);
  auto handles = parent.receive<Handles>();
  unsigned *memory = open(handles.memory), *word = open(handles.word);
  void* pooled = nullptr;
  CHECK(cudaMemPoolImportPointer(&pooled, pool, &handles.pooled));
  cudaEvent_t theirs, ours;
  CHECK(cudaIpcOpenEventHandle(&theirs, handles.mine));
  CHECK(cudaIpcOpenEventHandle(&ours, handles.yours));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  unsigned* own;
  CHECK(cudaMalloc(&own, count * sizeof *own));
  CHECK(cudaMemset(own, 0, count * sizeof *own));
  add(own, 77);
  bool ok = holds("memory of the parent", memory, 10) & holds("its pool's", static_cast<unsigned*>(pooled), 20);
  add(memory, 1);
  parent.meet();

  addInTurn(parent, stream, word, theirs, ours);  // the program may have been suspended in between
  CHECK(cudaStreamSynchronize(stream));
  ok &= holds("memory of the parent, then", memory, 12) & holds("its pool's, then", static_cast<unsigned*>(pooled), 21);
  ok &= holds("its own", own, 77);
  ok &= EXPECT(open(handles.memory) == memory);  // opened again, at the same address
  CHECK(cudaIpcCloseMemHandle(memory));
  add(memory, 5);
  add(static_cast<unsigned*>(pooled), 5);
  unsigned* since = open(parent.receive<cudaIpcMemHandle_t>());
  ok &= holds("memory that is given since", since, 40);
  parent.meet();
  CHECK(cudaEventDestroy(theirs));
  CHECK(cudaEventDestroy(ours));
  for (unsigned* each : {memory, word, since}) CHECK(cudaIpcCloseMemHandle(each));
  CHECK(cudaFree(pooled));
  CHECK(cudaMemPoolDestroy(pool));
  parent.meet();
  return ok ? 0 : 1;
}

// ------------------------------------------------------------------ physical memory


unsigned* import(int descriptor) {
  CUmemGenericAllocationHandle physical = 0;
  CALL(cuMemImportFromShareableHandle, &physical, reinterpret_cast<void*>(intptr_t(descriptor)), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  unsigned* memory = map(physical);
  CALL(cuMemRelease, physical);
  return memory;
}

int mapper(const Peer& parent, int descriptor) {
  CHECK(cudaFree(nullptr));
  unsigned *first = import(descriptor), *second = import(descriptor);
  close(descriptor);
  bool ok = holds("physical memory of the parent", first, 7);
  add(first, 1);
  parent.meet();
  parent.meet();  // the parent has released all of it

  ok &= holds("what only this one has", first, 8);
  add(second, 4);
  ok &= holds("by its other address", first, 12);
  unmap(first);
  ok &= holds("when that address is gone", second, 12);
  unmap(second);
  parent.meet();
  return ok ? 0 : 1;
}

// The parent's part, until it has released everything.
void giveAway(const Peer& child, CUmemGenericAllocationHandle physical, unsigned* memory) {
  child.meet();
  unmap(memory);
  CALL(cuMemRelease, physical);
}

// ------------------------------------------------------------------ the parent

unsigned* filled(unsigned value) {
  unsigned* memory;
  CHECK(cudaMalloc(&memory, count * sizeof *memory));
  CHECK(cudaMemset(memory, 0, count * sizeof *memory));
  add(memory, value);
  return memory;
}

unsigned* pooled(cudaMemPool_t pool, unsigned value) {
  unsigned* memory;
  CHECK(cudaMallocFromPoolAsync(&memory, count * sizeof *memory, pool, nullptr));
  CHECK(cudaMemsetAsync(memory, 0, count * sizeof *memory, nullptr));
  add(memory, value);
  return memory;
}

cudaEvent_t sharedEvent(cudaIpcEventHandle_t& handle) {
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  CHECK(cudaIpcGetEventHandle(&handle, event));
  return event;
}

int parent() {
  CUmemGenericAllocationHandle physical = 0;
  CUmemAllocationProp properties = exportable();
  CHECK(cudaFree(nullptr));
  CALL(cuMemCreate, &physical, granularity(), &properties, 0);
  unsigned* mapped = map(physical);
  CHECK(cudaMemset(mapped, 0, granularity()));
  add(mapped, 7);
  int descriptor = -1, poolDescriptor = -1;
  CALL(cuMemExportToShareableHandle, &descriptor, physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  Child second("mapper", descriptor);
  close(descriptor);
  giveAway(second, physical, mapped);

  Handles handles;
  cudaMemPool_t pool = exportablePool(poolDescriptor);
  unsigned *before = filled(1), *memory = filled(10), *word = filled(0), *inPool = pooled(pool, 20);
  cudaEvent_t mine = sharedEvent(handles.mine), yours = sharedEvent(handles.yours);
  CHECK(cudaIpcGetMemHandle(&handles.memory, memory));
  CHECK(cudaIpcGetMemHandle(&handles.word, word));
  CHECK(cudaMemPoolExportPointer(&handles.pooled, inPool));
  Child first("holder", poolDescriptor);
  close(poolDescriptor);
  first.send(handles);
  first.meet();
  add(memory, 1);
  add(inPool, 1);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  addSlowly<<<1, 1, 0, stream>>>(word, 20000);
  CHECK(cudaEventRecord(mine, stream));

  pausePoint();
  first.send('.');
  for (unsigned round = 0; round < rounds; ++round) {
    first.receive<char>();  // the child has recorded
    CHECK(cudaStreamWaitEvent(stream, yours, 0));
    addSlowly<<<1, 1, 0, stream>>>(word, 20000);
    CHECK(cudaEventRecord(mine, stream));
    if (round + 1 < rounds) first.send('.');
  }
  CHECK(cudaStreamSynchronize(stream));
  unsigned sum = 0;
  CHECK(cudaMemcpy(&sum, word, sizeof sum, cudaMemcpyDeviceToHost));
  bool ok = same("turns", std::vector<unsigned>{sum}, {2 * rounds + 1});
  unsigned* since = filled(40);
  cudaIpcMemHandle_t again;
  CHECK(cudaIpcGetMemHandle(&again, memory));
  ok &= EXPECT(std::memcmp(&again, &handles.memory, sizeof again) == 0);
  CHECK(cudaIpcGetMemHandle(&again, since));
  first.send(again);
  first.meet();
  ok &= holds("what the child has added", memory, 17) & holds("and in the pool", inPool, 26) & holds("memory before it", before, 1);
  first.meet();
  second.meet();
  second.meet();
  ok &= EXPECT(first.ended()) & EXPECT(second.ended());
  CHECK(cudaEventDestroy(mine));
  CHECK(cudaEventDestroy(yours));
  for (unsigned* each : {before, memory, word, since}) CHECK(cudaFree(each));
  CHECK(cudaFreeAsync(inPool, nullptr));
  CHECK(cudaStreamSynchronize(nullptr));
  CHECK(cudaMemPoolDestroy(pool));
  return verdict("ipc-together", ok);
}

int main(int argc, char** argv) {
  if (isChild(argc, argv, "mapper")) return mapper(parentOf(argv), inheritedBy(argv));
  return isChild(argc, argv, "holder") ? holder(parentOf(argv), inheritedBy(argv)) : parent();
}
