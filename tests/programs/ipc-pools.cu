// Allocations of a pool that was exported to another process (cudaMemPoolExportToShareableHandle), and physical memory that both map
// (cuMemExportToShareableHandle). Pools and physical memory are passed as file descriptors.
#include "driver-entry.h"
#include "processes.h"
#include "shared-physical.h"

__global__ void addTo(unsigned* data, unsigned count, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) data[i] += value;
}

constexpr unsigned count = 5000;

void add(unsigned* data, unsigned value) {
  addTo<<<8, 128>>>(data, count, value);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

bool holds(const char* what, const unsigned* data, unsigned value) {
  std::vector<unsigned> got(count);
  CHECK(cudaMemcpy(got.data(), data, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  return same(what, got, std::vector<unsigned>(count, value));
}

// ------------------------------------------------------------------ physical memory

int mappingChild(const Peer& parent, int descriptor) {
  CHECK(cudaFree(nullptr));
  CUmemGenericAllocationHandle physical = 0;
  CALL(cuMemImportFromShareableHandle, &physical, reinterpret_cast<void*>(intptr_t(descriptor)),
       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(descriptor);
  unsigned* memory = map(physical);
  CALL(cuMemRelease, physical);
  bool ok = holds("physical memory of the parent", memory, 7);
  add(memory, 1);
  parent.meet();
  unmap(memory);
  parent.meet();
  return ok ? 0 : 1;
}

bool tryPhysical() {
  CUmemGenericAllocationHandle physical = 0;
  CUmemAllocationProp properties = exportable();
  CALL(cuMemCreate, &physical, granularity(), &properties, 0);
  unsigned* memory = map(physical);
  CHECK(cudaMemset(memory, 0, granularity()));
  add(memory, 7);
  int descriptor = -1;
  CALL(cuMemExportToShareableHandle, &descriptor, physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  Child other("mapping", descriptor);
  close(descriptor);
  other.meet();
  bool ok = holds("what the child has added", memory, 8);
  other.meet();
  ok &= EXPECT(other.ended());
  unmap(memory);
  CALL(cuMemRelease, physical);
  return ok;
}

// ------------------------------------------------------------------ pools

struct Pointers {
  cudaMemPoolPtrExportData first, second;
};

int poolChild(const Peer& parent, int descriptor) {
  cudaMemPool_t pool;
  void* handle = reinterpret_cast<void*>(intptr_t(descriptor));
  CHECK(cudaMemPoolImportFromShareableHandle(&pool, handle, cudaMemHandleTypePosixFileDescriptor, 0));
  close(descriptor);
  auto pointers = parent.receive<Pointers>();
  void *first = nullptr, *second = nullptr, *none = nullptr;
  CHECK(cudaMemPoolImportPointer(&first, pool, &pointers.first));
  CHECK(cudaMemPoolImportPointer(&second, pool, &pointers.second));
  bool ok = holds("first allocation of the parent", static_cast<unsigned*>(first), 10);
  ok &= holds("second allocation of the parent", static_cast<unsigned*>(second), 20);
  ok &= EXPECT(cudaMallocFromPoolAsync(&none, 1000, pool, nullptr) != cudaSuccess);  // an imported pool cannot allocate
  cudaMemPoolPtrExportData wrong{};
  ok &= EXPECT(cudaMemPoolImportPointer(&none, pool, &wrong) != cudaSuccess);
  cudaMemPool_t own;
  CHECK(cudaDeviceGetDefaultMemPool(&own, 0));
  ok &= EXPECT(cudaMemPoolImportPointer(&none, own, &pointers.first) != cudaSuccess);
  cudaGetLastError();
  add(static_cast<unsigned*>(first), 1);
  add(static_cast<unsigned*>(second), 1);
  CHECK(cudaFreeAsync(first, nullptr));
  CHECK(cudaFree(second));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemPoolDestroy(pool));
  parent.meet();
  return ok ? 0 : 1;
}

unsigned* allocate(cudaMemPool_t pool, unsigned value) {
  unsigned* memory;
  CHECK(cudaMallocFromPoolAsync(&memory, count * sizeof *memory, pool, nullptr));
  CHECK(cudaMemsetAsync(memory, 0, count * sizeof *memory, nullptr));
  add(memory, value);
  return memory;
}

int parent() {
  int types = 0;
  CHECK(cudaDeviceGetAttribute(&types, cudaDevAttrMemoryPoolSupportedHandleTypes, 0));
  bool ok = EXPECT((types & cudaMemHandleTypePosixFileDescriptor) != 0) && tryPhysical();
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  cudaMemPool_t pool, plain;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaDeviceGetDefaultMemPool(&plain, 0));
  unsigned *first = allocate(pool, 10), *second = allocate(pool, 20), *other = allocate(plain, 30);

  int descriptor = -1;
  CHECK(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
  ok &= EXPECT(cudaMemPoolExportToShareableHandle(&descriptor, plain, cudaMemHandleTypePosixFileDescriptor, 0) != cudaSuccess);
  Pointers pointers;
  CHECK(cudaMemPoolExportPointer(&pointers.first, first));
  CHECK(cudaMemPoolExportPointer(&pointers.second, second));
  cudaMemPoolPtrExportData none;
  ok &= EXPECT(cudaMemPoolExportPointer(&none, other) != cudaSuccess);
  cudaGetLastError();
  Child child("pool", descriptor);
  close(descriptor);
  child.send(pointers);
  child.meet();
  ok &= EXPECT(child.ended());
  ok &= holds("the first, then", first, 11) & holds("the second, then", second, 21) & holds("another pool's", other, 30);

  pausePoint();
  ok &= holds("the first, later", first, 11);
  CHECK(cudaFreeAsync(first, nullptr));
  unsigned* again = allocate(pool, 40);  // in the same stream, and not in the shared memory
  ok &= holds("what is allocated again", again, 40) & holds("the second, later", second, 21);
  for (unsigned* memory : {again, second, other}) CHECK(cudaFreeAsync(memory, nullptr));
  CHECK(cudaStreamSynchronize(nullptr));
  CHECK(cudaMemPoolDestroy(pool));
  return verdict("ipc-pools", ok);
}

int main(int argc, char** argv) {
  if (isChild(argc, argv, "mapping")) return mappingChild(parentOf(argv), inheritedBy(argv));
  return isChild(argc, argv, "pool") ? poolChild(parentOf(argv), inheritedBy(argv)) : parent();
}
