// Virtual memory management: addresses without memory, memory without addresses, and mappings between them.
#include "driver-entry.h"

#include <cstring>

__global__ void fillWith(unsigned* data, size_t count, unsigned value) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) data[i] = value + unsigned(i);
}

__global__ void addOne(unsigned* data, size_t count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) data[i] += 1;
}

using Handle = CUmemGenericAllocationHandle;

CUmemAllocationProp pinnedOn(int device, bool exportable = false) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  if (exportable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

size_t granularity() {
  static const size_t known = [] {
    size_t bytes = 0;
    CUmemAllocationProp properties = pinnedOn(0);
    CALL(cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return bytes;
  }();
  return known;
}

Handle create(size_t bytes, bool exportable = false) {
  Handle handle = 0;
  CUmemAllocationProp properties = pinnedOn(0, exportable);
  CALL(cuMemCreate, &handle, bytes, &properties, 0);
  return handle;
}

CUdeviceptr reserve(size_t bytes, CUdeviceptr wanted = 0) {
  CUdeviceptr address = 0;
  CALL(cuMemAddressReserve, &address, bytes, 0, wanted, 0);
  return address;
}

void allow(CUdeviceptr address, size_t bytes, CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
  CALL(cuMemSetAccess, address, bytes, &access, 1);
}

CUresult tryToMap(CUdeviceptr address, size_t bytes, Handle handle, size_t offset = 0) {
  return DRIVER(cuMemMap)(address, bytes, offset, handle, 0);
}

unsigned* at(CUdeviceptr address) { return reinterpret_cast<unsigned*>(address); }

// Whether `count` numbers at `address` are first, first + 1, …
bool holds(CUdeviceptr address, size_t count, unsigned first) {
  std::vector<unsigned> values(count), expected(count);
  for (size_t i = 0; i < count; ++i) expected[i] = first + unsigned(i);
  CHECK(cudaMemcpy(values.data(), at(address), count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  return same("memory", values, expected);
}

// Like PyTorch's expandable segments: a large reservation that grows in pieces at its end, shrinks in its middle and grows again there.
class Segment {
 public:
  Segment() : piece(granularity()), base(reserve(64 * piece)) {}
  ~Segment() {
    for (size_t i = 0; i < handles.size(); ++i)
      if (handles[i] != 0) drop(i);
    CALL(cuMemAddressFree, base, 64 * piece);
  }
  void grow(size_t count) {
    for (size_t i = 0; i < count; ++i) fillPlace(handles.size());
    allow(base, handles.size() * piece);
  }
  void fillPlace(size_t index) {
    if (index == handles.size()) handles.push_back(0);
    handles[index] = create(piece);
    if (!EXPECT(tryToMap(base + index * piece, piece, handles[index]) == CUDA_SUCCESS)) std::exit(1);
  }
  void drop(size_t index) {
    CALL(cuMemUnmap, base + index * piece, piece);
    CALL(cuMemRelease, handles[index]);
    handles[index] = 0;
  }

  const size_t piece;
  const CUdeviceptr base;
  std::vector<Handle> handles;
};

bool growsAndShrinks(Segment& segment) {
  segment.grow(3);
  segment.grow(2);
  size_t count = 5 * segment.piece / sizeof(unsigned), perPiece = count / 5;
  fillWith<<<64, 256>>>(at(segment.base), count, 7);
  CHECK(cudaDeviceSynchronize());
  bool ok = holds(segment.base, count, 7);
  segment.drop(1);
  segment.fillPlace(1);
  allow(segment.base + segment.piece, segment.piece);
  fillWith<<<64, 256>>>(at(segment.base) + perPiece, perPiece, 100);
  CHECK(cudaDeviceSynchronize());
  return ok & holds(segment.base, perPiece, 7) & holds(segment.base + segment.piece, perPiece, 100) &
         holds(segment.base + 2 * segment.piece, perPiece, 7 + unsigned(2 * perPiece));
}

// One allocation at two addresses.
struct Alias {
  Alias() : bytes(granularity()), memory(create(bytes)), one(reserve(2 * bytes)), other(one + bytes) {
    if (!EXPECT(tryToMap(one, bytes, memory) == CUDA_SUCCESS) || !EXPECT(tryToMap(other, bytes, memory) == CUDA_SUCCESS))
      std::exit(1);
    allow(one, 2 * bytes);
    CALL(cuMemRelease, memory);  // the mappings keep it alive
  }
  ~Alias() {
    CALL(cuMemUnmap, one, 2 * bytes);
    CALL(cuMemAddressFree, one, 2 * bytes);
  }
  bool isOne(unsigned value) {
    fillWith<<<8, 256>>>(at(one), bytes / 4, value);
    addOne<<<8, 256>>>(at(other), bytes / 4);
    CHECK(cudaDeviceSynchronize());
    return holds(one, bytes / 4, value + 1) & holds(other, bytes / 4, value + 1);
  }

  const size_t bytes;
  const Handle memory;
  const CUdeviceptr one, other;
};

bool describesItself(CUdeviceptr address, size_t bytes) {
  CUdeviceptr base = 0;
  size_t size = 0;
  CUmemorytype type{};
  int ordinal = -1;
  unsigned long long flags = 0;
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CALL(cuMemGetAddressRange, &base, &size, address + 4096);
  CALL(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  CALL(cuPointerGetAttribute, &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  CALL(cuMemGetAccess, &flags, &here, address);
  Handle handle = 0;
  CUmemAllocationProp properties{};
  CALL(cuMemRetainAllocationHandle, &handle, reinterpret_cast<void*>(address + 4096));
  CALL(cuMemGetAllocationPropertiesFromHandle, &properties, handle);
  CALL(cuMemRelease, handle);
  return EXPECT(base == address) & EXPECT(size == bytes) & EXPECT(type == CU_MEMORYTYPE_DEVICE) & EXPECT(ordinal == 0) &
         EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) & EXPECT(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED) &
         EXPECT(properties.location.id == 0);
}

int exported(Handle memory) {
  int descriptor = -1;
  CALL(cuMemExportToShareableHandle, &descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  return descriptor;
}

// Imports the memory and closes the descriptor.
Handle imported(int descriptor) {
  Handle memory = 0;
  void* shareable = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  CALL(cuMemImportFromShareableHandle, &memory, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(descriptor);
  return memory;
}

// Two mappings of the same physical memory.
bool isOneBlock(CUdeviceptr one, CUdeviceptr other) {
  unsigned long long blocks[2]{}, mappings[2]{};
  for (int i = 0; i < 2; ++i) {
    CALL(cuPointerGetAttribute, &blocks[i], CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, i == 0 ? one : other);
    CALL(cuPointerGetAttribute, &mappings[i], CU_POINTER_ATTRIBUTE_BUFFER_ID, i == 0 ? one : other);
  }
  return EXPECT(blocks[0] == blocks[1]) & EXPECT(mappings[0] != mappings[1]);
}

// Exported and imported within the process; the memory lives as long as the descriptor is open.
bool isExported() {
  const size_t bytes = granularity();
  Handle memory = create(bytes, true), closed = 0;
  int descriptor = exported(memory);
  CUdeviceptr address = reserve(bytes);
  bool ok = EXPECT(tryToMap(address, bytes, memory) == CUDA_SUCCESS);
  allow(address, bytes);
  fillWith<<<8, 256>>>(at(address), bytes / 4, 5);
  CHECK(cudaDeviceSynchronize());
  CALL(cuMemUnmap, address, bytes);
  CALL(cuMemRelease, memory);
  const Handle again = imported(descriptor);
  ok &= EXPECT(tryToMap(address, bytes, again) == CUDA_SUCCESS);
  allow(address, bytes);
  ok &= holds(address, bytes / 4, 5);
  CALL(cuMemUnmap, address, bytes);
  CALL(cuMemRelease, again);
  CALL(cuMemAddressFree, address, bytes);
  auto import = DRIVER(cuMemImportFromShareableHandle);
  ok &= EXPECT(import(&closed, nullptr, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS);
  Handle unshared = create(bytes);
  ok &= EXPECT(DRIVER(cuMemExportToShareableHandle)(&descriptor, unshared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
               CUDA_ERROR_INVALID_VALUE);
  CALL(cuMemRelease, unshared);
  return ok;
}

// Graph nodes refer to addresses: each launch uses the memory that is mapped there then.
bool isUsedByGraphs() {
  const size_t bytes = granularity(), count = 1000;
  const Handle memories[] = {create(bytes), create(bytes)};
  const CUdeviceptr address = reserve(bytes);
  auto map = [&](int which) {
    if (!EXPECT(tryToMap(address, bytes, memories[which]) == CUDA_SUCCESS)) std::exit(1);
    allow(address, bytes);
  };
  DeviceArray<unsigned> source(count), out(count);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  fillWith<<<8, 256>>>(source, count, 100);
  CHECK(cudaDeviceSynchronize());
  map(0);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemsetAsync(at(address), 0, bytes, stream));
  CHECK(cudaMemcpyAsync(at(address), source, count * sizeof(unsigned), cudaMemcpyDeviceToDevice, stream));
  addOne<<<8, 256, 0, stream>>>(at(address), count);
  CALL(cuStreamWriteValue32, stream, address + count * sizeof(unsigned), 101 + count, 0);
  CHECK(cudaMemcpyAsync(out, at(address), count * sizeof(unsigned), cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  bool ok = true;
  for (int which : {0, 1, 0, 1}) {  // uploaded by its first launch, and not again
    CALL(cuMemUnmap, address, bytes);
    map(which);
    fillWith<<<8, 256>>>(at(address), bytes / sizeof(unsigned), 5);
    CHECK(cudaMemset(out, 0, count * sizeof(unsigned)));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::vector<unsigned> rest(1, 1);
    CHECK(cudaMemcpy(rest.data(), at(address + bytes) - 1, sizeof(unsigned), cudaMemcpyDeviceToHost));
    ok &= holds(address, count + 1, 101) & holds(reinterpret_cast<CUdeviceptr>(static_cast<unsigned*>(out)), count, 101) &
          same("the rest", rest, {0});
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  CALL(cuMemUnmap, address, bytes);
  for (Handle memory : memories) CALL(cuMemRelease, memory);
  CALL(cuMemAddressFree, address, bytes);
  return ok;
}

// Memory of the last device beside that of the first.
bool worksOnLastDevice() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  const size_t bytes = granularity();
  CUmemAllocationProp properties = pinnedOn(count - 1);
  Handle handle = 0;
  CALL(cuMemCreate, &handle, bytes, &properties, 0);
  CUdeviceptr address = reserve(bytes);
  bool ok = EXPECT(tryToMap(address, bytes, handle) == CUDA_SUCCESS);
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CALL(cuMemSetAccess, address, bytes, &access, 1);
  CHECK(cudaSetDevice(count - 1));
  fillWith<<<8, 256>>>(at(address), bytes / 4, 9);
  CHECK(cudaDeviceSynchronize());
  ok &= holds(address, bytes / 4, 9);
  CHECK(cudaSetDevice(0));
  CALL(cuMemUnmap, address, bytes);
  CALL(cuMemRelease, handle);
  CALL(cuMemAddressFree, address, bytes);
  return ok;
}

bool refusesWrongUses() {
  const size_t bytes = granularity();
  auto makeWith = [&](CUmemAllocationProp properties, size_t size, unsigned long long flags = 0) {
    Handle handle = 0;
    return DRIVER(cuMemCreate)(&handle, size, &properties, flags);
  };
  auto reserving = [](size_t size, size_t alignment, unsigned long long flags) {
    CUdeviceptr address = 0;
    return DRIVER(cuMemAddressReserve)(&address, size, alignment, 0, flags);
  };
  auto allowing = [](CUdeviceptr address, size_t size, int device, CUmemAccess_flags flags) {
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
    return DRIVER(cuMemSetAccess)(address, size, &access, 1);
  };
  auto unmap = DRIVER(cuMemUnmap);
  auto freeAddress = DRIVER(cuMemAddressFree);
  bool ok = EXPECT(makeWith(pinnedOn(0), bytes + 1) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(makeWith(pinnedOn(0), 0) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(makeWith(pinnedOn(0), bytes, 1) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(makeWith(pinnedOn(99), bytes) == CUDA_ERROR_INVALID_DEVICE) &
            EXPECT(makeWith({}, bytes) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(makeWith(pinnedOn(0), size_t{1} << 45) != CUDA_SUCCESS) &
            EXPECT(reserving(0, 0, 0) == CUDA_ERROR_INVALID_VALUE) & EXPECT(reserving(bytes, 3, 0) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(reserving(bytes, 0, 1) == CUDA_ERROR_INVALID_VALUE) & EXPECT(DRIVER(cuMemRelease)(77) == CUDA_ERROR_INVALID_VALUE);

  Handle two = create(2 * bytes);
  CUdeviceptr base = reserve(4 * bytes);
  ok &= EXPECT(tryToMap(base, bytes, 77) == CUDA_ERROR_INVALID_VALUE) &
        EXPECT(tryToMap(base + 4 * bytes, bytes, two) == CUDA_ERROR_NOT_SUPPORTED) &
        EXPECT(tryToMap(base, 4 * bytes, two) == CUDA_ERROR_NOT_SUPPORTED) &
        EXPECT(tryToMap(base + 1, bytes, two) == CUDA_ERROR_NOT_SUPPORTED);
  ok &= EXPECT(tryToMap(base, 2 * bytes, two) == CUDA_SUCCESS);
  ok &= EXPECT(tryToMap(base + bytes, 2 * bytes, two) == CUDA_ERROR_INVALID_VALUE) &
        EXPECT(unmap(base, bytes) == CUDA_ERROR_INVALID_VALUE) & EXPECT(unmap(base + bytes, bytes) == CUDA_ERROR_INVALID_VALUE) &
        EXPECT(unmap(base + 2 * bytes, bytes) == CUDA_SUCCESS) &
        EXPECT(allowing(base, bytes, 0, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_ERROR_INVALID_VALUE) &
        EXPECT(allowing(base, 3 * bytes, 0, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_ERROR_INVALID_VALUE) &
        EXPECT(allowing(base, 2 * bytes, 99, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_ERROR_INVALID_VALUE) &
        EXPECT(freeAddress(base, 4 * bytes) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(DRIVER(cuMemFree)(base) == CUDA_ERROR_INVALID_VALUE);
  unsigned word = 0;  // no access to the range is granted yet
  ok &= EXPECT(DRIVER(cuMemcpyDtoH)(&word, base, sizeof word) == CUDA_ERROR_INVALID_VALUE);
  CALL(cuMemUnmap, base, 2 * bytes);
  ok &= EXPECT(freeAddress(base, bytes) == CUDA_ERROR_INVALID_VALUE) & EXPECT(freeAddress(base + bytes, 3 * bytes) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(DRIVER(cuMemcpyDtoH)(&word, base, sizeof word) == CUDA_ERROR_INVALID_VALUE);
  CALL(cuMemRelease, two);
  ok &= EXPECT(DRIVER(cuMemRelease)(two) == CUDA_ERROR_INVALID_VALUE);
  CALL(cuMemAddressFree, base, 4 * bytes);
  CUdeviceptr wanted = reserve(bytes, base);  // free again
  ok &= EXPECT(wanted == base) & EXPECT(reserve(bytes, base) != base);  // an address hint that cannot be satisfied is not an error
  return ok;
}

int main() {
  int supported = 0;
  CHECK(cudaFree(nullptr));
  CALL(cuDeviceGetAttribute, &supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
  if (!supported) return notHere;

  bool ok = refusesWrongUses() & isExported() & isUsedByGraphs() & worksOnLastDevice();
  Segment segment;
  ok &= growsAndShrinks(segment);
  Alias alias;
  ok &= alias.isOne(1000) & isOneBlock(alias.one, alias.other) & describesItself(alias.one, alias.bytes) &
        describesItself(segment.base + segment.piece, segment.piece);

  // Unmapped memory keeps its bytes, even if only a descriptor keeps it alive.
  const size_t bytes = granularity();
  Handle unmapped = create(bytes, true);
  CUdeviceptr place = reserve(bytes);
  ok &= EXPECT(tryToMap(place, bytes, unmapped) == CUDA_SUCCESS);
  allow(place, bytes);
  fillWith<<<8, 256>>>(at(place), bytes / 4, 31);
  CHECK(cudaDeviceSynchronize());
  CALL(cuMemUnmap, place, bytes);
  const int descriptor = exported(unmapped), copy = dup(descriptor);
  CALL(cuMemRelease, unmapped);

  pausePoint();

  unmapped = imported(descriptor);
  const Handle again = imported(copy);

  ok &= holds(segment.base, segment.piece / 4, 7) & holds(segment.base + segment.piece, segment.piece / 4, 100);
  ok &= holds(alias.one, alias.bytes / 4, 1001) & holds(alias.other, alias.bytes / 4, 1001) & alias.isOne(2000);
  ok &= EXPECT(tryToMap(place, bytes, unmapped) == CUDA_SUCCESS);
  allow(place, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ);
  ok &= holds(place, bytes / 4, 31);
  CALL(cuMemUnmap, place, bytes);
  ok &= EXPECT(tryToMap(place, bytes, again) == CUDA_SUCCESS);
  allow(place, bytes);
  ok &= holds(place, bytes / 4, 31);
  CALL(cuMemUnmap, place, bytes);
  CALL(cuMemRelease, unmapped);
  CALL(cuMemRelease, again);
  CALL(cuMemAddressFree, place, bytes);
  segment.grow(1);
  addOne<<<64, 256>>>(at(segment.base), 6 * segment.piece / 4);
  CHECK(cudaDeviceSynchronize());
  ok &= holds(segment.base, segment.piece / 4, 8);
  return verdict("virtual-memory", ok);
}
