// Physical memory of the host (cuMemCreate): the program and its GPU use it at one address, each as far as it has access; and memory that
// the GPU may compress.
#include "driver-entry.h"

#include <csetjmp>
#include <csignal>

using Handle = CUmemGenericAllocationHandle;

constexpr size_t piece = 2 << 20;
constexpr CUmemLocation onHost{CU_MEM_LOCATION_TYPE_HOST, 0}, onDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};

__global__ void addTo(unsigned* data, size_t count, unsigned value) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) data[i] += value;
}

unsigned* at(CUdeviceptr address) { return reinterpret_cast<unsigned*>(address); }

Handle create(CUmemLocation location, size_t bytes, unsigned char compression = CU_MEM_ALLOCATION_COMP_NONE) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location;
  properties.allocFlags.compressionType = compression;
  Handle handle = 0;
  CALL(cuMemCreate, &handle, bytes, &properties, 0);
  return handle;
}

CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr address = 0;
  CALL(cuMemAddressReserve, &address, bytes, 0, 0, 0);
  return address;
}

void allow(CUmemLocation location, CUdeviceptr address, size_t bytes, CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  CUmemAccessDesc access{location, flags};
  CALL(cuMemSetAccess, address, bytes, &access, 1);
}

// Whether the host may read, or write, a word.
sigjmp_buf faulted;
bool canTouch(CUdeviceptr address, bool writes) {
  auto before = std::signal(SIGSEGV, [](int) { siglongjmp(faulted, 1); });
  volatile unsigned* word = at(address);
  bool could = false;
  if (sigsetjmp(faulted, 1) == 0) {
    const unsigned value = *word;
    if (writes) *word = value;
    could = true;
  }
  std::signal(SIGSEGV, before);
  return could;
}

void writeNumbers(CUdeviceptr address, size_t count, unsigned first) {
  for (size_t i = 0; i < count; ++i) at(address)[i] = first + unsigned(i);
}

bool hasNumbers(CUdeviceptr address, size_t count, unsigned first) {
  std::vector<unsigned> values(at(address), at(address) + count), expected(count);
  for (size_t i = 0; i < count; ++i) expected[i] = first + unsigned(i);
  return same("the host's memory", values, expected);
}

void addOnDevice(CUdeviceptr address, size_t count, unsigned value) {
  addTo<<<8, 256>>>(at(address), count, value);
  CHECK(cudaDeviceSynchronize());
}

// One piece of memory at two addresses, one of them read-only for the host, and device memory between them.
struct Exchange {
  static constexpr size_t bytes = 2 * piece, count = bytes / sizeof(unsigned);
  CUdeviceptr base = reserve(3 * bytes), middle = base + bytes, again = base + 2 * bytes;
  Handle host = create(onHost, bytes), device = create(onDevice, bytes);

  Exchange() {
    CALL(cuMemMap, base, bytes, 0, host, 0);
    CALL(cuMemMap, middle, bytes, 0, device, 0);
    CALL(cuMemMap, again, bytes, 0, host, 0);
    allow(onDevice, base, 3 * bytes);
    allow(onHost, base, bytes);
    allow(onHost, again, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ);
  }
  void end() {
    CALL(cuMemUnmap, base, 3 * bytes);
    CALL(cuMemRelease, host);
    CALL(cuMemRelease, device);
    CALL(cuMemAddressFree, base, 3 * bytes);
  }

  bool works(unsigned first) {
    writeNumbers(base, count, first);
    addOnDevice(base, count, 10);
    bool ok = hasNumbers(again, count, first + 10);
    addOnDevice(again, count, 10);
    ok &= hasNumbers(base, count, first + 20);
    // From the host's memory to the device's and back, in halves.
    CHECK(cudaMemcpy(at(middle), at(base), bytes, cudaMemcpyDefault));
    addOnDevice(middle, count, 5);
    CHECK(cudaMemcpy(at(again), at(middle), bytes / 2, cudaMemcpyDefault));
    CHECK(cudaMemcpyAsync(at(again) + count / 2, at(middle) + count / 2, bytes / 2, cudaMemcpyDefault));
    CHECK(cudaDeviceSynchronize());
    ok &= hasNumbers(base, count, first + 25);
    return ok & EXPECT(canTouch(again, false)) & EXPECT(!canTouch(again, true)) & EXPECT(!canTouch(middle, false));
  }
};

// Fills and copies in a graph, by the memory's address.
bool isUsedByGraphs(CUdeviceptr address, size_t count) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyAsync(at(address) + count / 2, at(address), count / 2 * sizeof(unsigned), cudaMemcpyDefault, stream));
  addTo<<<8, 256, 0, stream>>>(at(address) + count / 2, count / 2, unsigned(count / 2));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  bool ok = true;
  for (unsigned first : {3u, 4000u}) {
    writeNumbers(address, count / 2, first);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    ok &= hasNumbers(address, count, first);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

// Access is revoked and granted; memory without a handle lives as long as its mapping; the address is then reused for other memory.
bool changesHands() {
  const CUdeviceptr address = reserve(piece);
  Handle handle = create(onHost, piece), found = 0;
  CALL(cuMemMap, address, piece, 0, handle, 0);
  bool ok = EXPECT(!canTouch(address, false));
  allow(onHost, address, piece);
  writeNumbers(address, 64, 7);
  allow(onHost, address, piece, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  ok &= EXPECT(!canTouch(address, false));
  CALL(cuMemRelease, handle);
  CALL(cuMemRetainAllocationHandle, &found, reinterpret_cast<void*>(address));
  CALL(cuMemUnmap, address, piece);
  ok &= EXPECT(!canTouch(address, false));

  Handle device = create(onDevice, piece);
  CALL(cuMemMap, address, piece, 0, device, 0);
  allow(onDevice, address, piece);
  CHECK(cudaMemset(at(address), 0, piece));
  CHECK(cudaDeviceSynchronize());
  CALL(cuMemUnmap, address, piece);
  CALL(cuMemRelease, device);

  CALL(cuMemMap, address, piece, 0, found, 0);
  allow(onHost, address, piece);
  allow(onDevice, address, piece);
  ok &= hasNumbers(address, 64, 7);
  addOnDevice(address, 64, 1);
  ok &= hasNumbers(address, 64, 8);
  CALL(cuMemUnmap, address, piece);
  CALL(cuMemRelease, found);
  CALL(cuMemAddressFree, address, piece);
  return ok;
}

// Memory of the device; the device decides whether it is compressed.
struct Compressible {
  CUdeviceptr address = reserve(2 * piece);
  Handle handle = create(onDevice, 2 * piece, CU_MEM_ALLOCATION_COMP_GENERIC);

  Compressible() {
    CALL(cuMemMap, address, 2 * piece, 0, handle, 0);
    allow(onDevice, address, 2 * piece);
    CHECK(cudaMemset(at(address), 0, 2 * piece));
    addOnDevice(address, piece / sizeof(unsigned), 77);
  }
  bool isIntact() {
    int isSupported = 0;
    CUmemAllocationProp properties{};
    CALL(cuDeviceGetAttribute, &isSupported, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0);
    CALL(cuMemGetAllocationPropertiesFromHandle, &properties, handle);
    std::vector<unsigned> values(2 * piece / sizeof(unsigned)), expected(values.size());
    for (size_t i = 0; i < values.size() / 2; ++i) expected[i] = 77;
    CHECK(cudaMemcpy(values.data(), at(address), 2 * piece, cudaMemcpyDeviceToHost));
    return same("compressible memory", values, expected) & EXPECT(isSupported || properties.allocFlags.compressionType == 0);
  }
};

int main() {
  int supported = 0;
  CHECK(cudaFree(nullptr));
  CALL(cuDeviceGetAttribute, &supported, CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
  if (!supported) return notHere;

  Exchange exchange;
  Compressible compressible;
  bool ok = exchange.works(100) & isUsedByGraphs(exchange.base, exchange.count) & changesHands() & compressible.isIntact();

  // Memory that is not mapped, and memory that only the host may access.
  Handle unmapped = create(onHost, piece), hosts = create(onHost, piece);
  const CUdeviceptr place = reserve(piece), hostsPlace = reserve(piece);
  CALL(cuMemMap, place, piece, 0, unmapped, 0);
  allow(onHost, place, piece);
  writeNumbers(place, 1000, 31);
  CALL(cuMemUnmap, place, piece);
  CALL(cuMemMap, hostsPlace, piece, 0, hosts, 0);
  allow(onHost, hostsPlace, piece);
  writeNumbers(hostsPlace, 1000, 53);
  writeNumbers(exchange.base, exchange.count, 900);
  addTo<<<8, 256>>>(at(exchange.base), exchange.count, 8);

  pausePoint();

  CHECK(cudaDeviceSynchronize());
  ok &= hasNumbers(exchange.again, exchange.count, 908) & exchange.works(200) & isUsedByGraphs(exchange.base, exchange.count);
  ok &= compressible.isIntact() & changesHands() & hasNumbers(hostsPlace, 1000, 53);
  allow(onDevice, hostsPlace, piece);
  addOnDevice(hostsPlace, 1000, 1);
  ok &= hasNumbers(hostsPlace, 1000, 54);
  CALL(cuMemMap, place, piece, 0, unmapped, 0);
  allow(onHost, place, piece, CU_MEM_ACCESS_FLAGS_PROT_READ);
  ok &= hasNumbers(place, 1000, 31) & EXPECT(!canTouch(place, true));
  exchange.end();
  return verdict("host-physical", ok);
}
