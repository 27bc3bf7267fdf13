// Memory of one process that another maps (cudaIpcGetMemHandle): each reads what the other writes, neighbouring allocations keep their
// bytes, and memory allocated after a free is not shared.
#include <string>

#include "driver-entry.h"
#include "in-session.h"
#include "processes.h"

__global__ void fillWith(unsigned* data, size_t count, unsigned value) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) data[i] = value + unsigned(i);
}

// Natively, memory that its owner has freed is undefined for processes that still have it open, and only some bytes of a handle are
// checked. In a session shared memory lasts until every process has closed it, and a handle must be one that was made.

constexpr size_t small = 1000, large = (9 << 20) + 12345;

void fill(unsigned* data, size_t count, unsigned value) {
  fillWith<<<32, 128>>>(data, count, value);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

bool holds(const char* what, const unsigned* data, size_t count, unsigned value) {
  std::vector<unsigned> got(count), want(count);
  for (size_t i = 0; i < count; ++i) want[i] = value + unsigned(i);
  CHECK(cudaMemcpy(got.data(), data, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  return same(what, got, want);
}

struct Handles {
  cudaIpcMemHandle_t small, large;
};

unsigned* open(const cudaIpcMemHandle_t& handle) {
  void* memory = nullptr;
  CHECK(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  return static_cast<unsigned*>(memory);
}

// ------------------------------------------------------------------ the child

bool refuseWrongUses(const cudaIpcMemHandle_t& handle) {
  void* memory = nullptr;
  cudaIpcMemHandle_t wrong{};
  bool ok = EXPECT_ERROR(cudaIpcOpenMemHandle(&memory, handle, 0), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaIpcOpenMemHandle(nullptr, handle, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaIpcOpenMemHandle(&memory, wrong, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidValue);
  wrong = handle;
  wrong.reserved[9] ^= 1;  // not a valid handle any more
  ok &= !inSession || EXPECT(cudaIpcOpenMemHandle(&memory, wrong, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);
  unsigned* own = nullptr;
  CHECK(cudaMalloc(&own, small));
  ok &= EXPECT_ERROR(cudaIpcCloseMemHandle(own), cudaErrorInvalidValue);
  CHECK(cudaFree(own));
  cudaGetLastError();
  return ok;
}

int child(const Peer& parent) {
  const auto handles = parent.receive<Handles>();
  bool ok = refuseWrongUses(handles.small);
  unsigned* first = open(handles.small);
  unsigned* second = open(handles.large);
  ok &= EXPECT(open(handles.small) == first);  // opened again, at the same address
  CUdeviceptr base = 0;
  size_t bytes = 0;
  CALL(cuMemGetAddressRange, &base, &bytes, reinterpret_cast<CUdeviceptr>(second + 5));
  ok &= EXPECT(base == reinterpret_cast<CUdeviceptr>(second) && bytes >= large * sizeof(unsigned));
  ok &= holds("small memory of the parent", first, small, 100);
  ok &= holds("large memory of the parent", second, large, 200);
  ok &= EXPECT_ERROR(cudaFree(first), cudaErrorInvalidValue);
  cudaGetLastError();
  fill(first, small, 300);
  fill(second, large, 400);
  parent.meet();  // the child has written
  parent.meet();  // the parent has checked, freed the shared memory, and written to memory allocated since
  ok &= !inSession || holds("what was shared, after its free", first, small, 300);
  CHECK(cudaIpcCloseMemHandle(first));
  ok &= !inSession || holds("what is opened twice and closed once", first, small, 300);
  CHECK(cudaIpcCloseMemHandle(first));
  ok &= EXPECT_ERROR(cudaIpcCloseMemHandle(first), cudaErrorInvalidValue);
  CHECK(cudaIpcCloseMemHandle(second));
  void* memory = nullptr;
  const cudaError_t freed = cudaIpcOpenMemHandle(&memory, handles.small, cudaIpcMemLazyEnablePeerAccess);
  ok &= !inSession || EXPECT(freed != cudaSuccess);
  cudaGetLastError();
  parent.meet();
  return ok ? 0 : 1;
}

// ------------------------------------------------------------------ the parent

bool refuseOtherMemory() {
  cudaIpcMemHandle_t handle;
  void *pinned = nullptr, *managed = nullptr, *pooled = nullptr;
  CHECK(cudaMallocHost(&pinned, small));
  CHECK(cudaMallocManaged(&managed, small));
  CHECK(cudaMallocAsync(&pooled, small, nullptr));
  bool ok = true;
  for (void* memory : {pinned, managed, pooled}) ok &= EXPECT_ERROR(cudaIpcGetMemHandle(&handle, memory), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaIpcGetMemHandle(&handle, nullptr), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(managed));
  CHECK(cudaFreeAsync(pooled, nullptr));
  return ok;
}

// The position of the pause point.
enum class Pause {
  atEnd,
  whileGiven,  // handles exist, but none is opened
  whileHeld,   // the child has the memory open
  whileFreed,  // it still has memory open that the parent has freed
};

int parent(Pause pause) {
  bool ok = refuseOtherMemory();
  unsigned *before, *shared, *after, *big;
  CHECK(cudaMalloc(&before, small * sizeof(unsigned)));
  CHECK(cudaMalloc(&shared, small * sizeof(unsigned)));
  CHECK(cudaMalloc(&after, small * sizeof(unsigned)));
  CHECK(cudaMalloc(&big, large * sizeof(unsigned)));
  fill(before, small, 1);
  fill(shared, small, 100);
  fill(after, small, 2);
  fill(big, large, 200);

  Handles handles;
  CHECK(cudaIpcGetMemHandle(&handles.small, shared));
  CHECK(cudaIpcGetMemHandle(&handles.large, big));
  cudaIpcMemHandle_t again;
  CHECK(cudaIpcGetMemHandle(&again, shared));
  ok &= EXPECT(std::memcmp(&again, &handles.small, sizeof again) == 0);
  ok &= holds("memory before it", before, small, 1) & holds("itself", shared, small, 100) & holds("behind it", after, small, 2);
  ok &= holds("large memory", big, large, 200);
  void* own = nullptr;
  ok &= EXPECT_ERROR(cudaIpcOpenMemHandle(&own, handles.small, cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized);
  cudaGetLastError();

  if (pause == Pause::whileGiven) pausePoint();
  Child other("child");
  other.send(handles);
  other.meet();
  if (pause == Pause::whileHeld) pausePoint();
  ok &= holds("what the child has written", shared, small, 300) & holds("of the large one too", big, large, 400);
  ok &= holds("memory before it, then", before, small, 1) & holds("behind it, then", after, small, 2);
  CHECK(cudaFree(shared));
  if (pause == Pause::whileFreed) pausePoint();
  unsigned* since;
  CHECK(cudaMalloc(&since, small * sizeof(unsigned)));
  fill(since, small, 500);
  fill(before, small, 3);
  other.meet();
  other.meet();
  ok &= EXPECT(other.ended());
  ok &= holds("memory allocated since", since, small, 500) & holds("memory before it, at last", before, small, 3);

  if (pause == Pause::atEnd) pausePoint();  // no process has the memory open
  ok &= holds("the large memory, later", big, large, 400) & holds("memory behind it, later", after, small, 2);
  CHECK(cudaIpcGetMemHandle(&again, big));
  ok &= EXPECT(std::memcmp(&again, &handles.large, sizeof again) == 0);
  for (unsigned* memory : {before, after, big, since}) CHECK(cudaFree(memory));
  return verdict("ipc-memory", ok);
}

int main(int argc, char** argv) {
  if (isChild(argc, argv, "child")) return child(parentOf(argv));
  const std::string when = argc > 1 ? argv[1] : "";
  if (when == "given") return parent(Pause::whileGiven);
  return parent(when == "hold" ? Pause::whileHeld : when == "freed" ? Pause::whileFreed : Pause::atEnd);
}
