// Virtual memory management between two devices: physical memory of one is mapped for both, and accessible as the program has set, also
// after a pause. Not applicable without two peer devices.
#include "driver-entry.h"
#include "peer-devices.h"

__global__ void addTo(unsigned* data, unsigned value) { data[threadIdx.x] += value; }

namespace {

constexpr unsigned count = 64;
constexpr CUmemAccess_flags noAccess = CU_MEM_ACCESS_FLAGS_PROT_NONE, readWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

CUmemAccessDesc accessOf(int device, CUmemAccess_flags flags) { return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags}; }

// A piece of device `owner`'s memory, mapped for both devices.
struct Mapped {
  explicit Mapped(int owner) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, owner};
    CALL(cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    CALL(cuMemAddressReserve, &address, bytes, 0, 0, 0);
    CALL(cuMemCreate, &memory, bytes, &properties, 0);
    CALL(cuMemMap, address, bytes, 0, memory, 0);
    const CUmemAccessDesc both[] = {accessOf(0, readWrite), accessOf(1, readWrite)};
    CALL(cuMemSetAccess, address, bytes, both, 2);
    CHECK(cudaSetDevice(1 - owner));
    CHECK(cudaMemset(data(), 0, bytes));
    CHECK(cudaDeviceSynchronize());
  }
  ~Mapped() {
    CALL(cuMemUnmap, address, bytes);
    CALL(cuMemRelease, memory);
    CALL(cuMemAddressFree, address, bytes);
  }
  unsigned* data() const { return reinterpret_cast<unsigned*>(address); }
  unsigned long long accessFor(int device) const {
    unsigned long long flags = 0;
    CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, device};
    CALL(cuMemGetAccess, &flags, &location, address);
    return flags;
  }

  size_t bytes = 0;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle memory = 0;
};

// The pointer's attributes reflect the current device's access; the memory belongs to its owner.
bool describes(const Mapped& mapped, int owner) {
  bool ok = true;
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    const bool isReached = mapped.accessFor(device) != noAccess;
    int ordinal = -1;
    unsigned flags = 99;
    CUdeviceptr pointer = 0, start = 0;
    size_t size = 0;
    CALL(cuPointerGetAttribute, &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, mapped.address);
    CALL(cuPointerGetAttribute, &flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, mapped.address);
    const CUresult found = DRIVER(cuPointerGetAttribute)(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, mapped.address);
    const CUresult ranged = DRIVER(cuMemGetAddressRange)(&start, &size, mapped.address + 4);
    ok &= EXPECT(ordinal == owner) & EXPECT(flags == mapped.accessFor(device));
    ok &= EXPECT(found == (isReached ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    ok &= EXPECT(ranged == (isReached ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND));
  }
  return ok;
}

// Kernels of both devices add to it, and both copy it.
bool bothUse(const Mapped& mapped, unsigned before) {
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    addTo<<<1, count>>>(mapped.data(), 1);
    CHECK(cudaDeviceSynchronize());
  }
  bool ok = true;
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    std::vector<unsigned> seen(count);
    CHECK(cudaMemcpy(seen.data(), mapped.data(), count * sizeof(unsigned), cudaMemcpyDeviceToHost));
    ok &= same("memory", seen, std::vector<unsigned>(count, before + 2));
  }
  return ok;
}

// Memory that device 0 cannot access is copied for it nevertheless, if the copy is a peer copy.
bool copiedAsPeers(const Mapped& here, const Mapped& there) {
  CHECK(cudaSetDevice(0));
  std::vector<unsigned> values(count);
  for (unsigned i = 0; i < count; ++i) values[i] = 7 * i;
  constexpr size_t bytes = count * sizeof(unsigned);
  CHECK(cudaMemcpy(here.data() + count, values.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyPeer(there.data() + count, 1, here.data() + count, 0, bytes));
  cudaMemcpy3DPeerParms back{};
  back.srcDevice = 1;
  back.srcPtr = make_cudaPitchedPtr(there.data() + count, bytes / 4, bytes / 4, 2);
  back.dstPtr = make_cudaPitchedPtr(here.data() + 2 * count, bytes / 4, bytes / 4, 2);
  back.extent = make_cudaExtent(bytes / 4, 2, 2);
  CHECK(cudaMemcpy3DPeerAsync(&back, nullptr));
  CHECK(cudaDeviceSynchronize());
  std::vector<unsigned> seen(count);
  CHECK(cudaMemcpy(seen.data(), here.data() + 2 * count, bytes, cudaMemcpyDeviceToHost));
  return same("there and back", seen, values);
}

}  // namespace

int main() {
  if (!devicesReachEachOther()) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // emulated devices are peers
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(nullptr));
  bool ok = true;
  {
    Mapped here(0), there(1);
    ok &= bothUse(here, 0) & bothUse(there, 0);
    const CUmemAccessDesc withdrawn = accessOf(0, noAccess);
    CALL(cuMemSetAccess, there.address, there.bytes, &withdrawn, 1);
    pausePoint();
    ok &= EXPECT(there.accessFor(0) == noAccess) & EXPECT(there.accessFor(1) == readWrite) & EXPECT(here.accessFor(1) == readWrite);
    ok &= describes(here, 0) & describes(there, 1);
    ok &= copiedAsPeers(here, there);
    const CUmemAccessDesc again = accessOf(0, readWrite);
    CALL(cuMemSetAccess, there.address, there.bytes, &again, 1);
    ok &= bothUse(here, 2) & bothUse(there, 2);
    const CUmemAccessDesc wrong = accessOf(99, readWrite);
    ok &= EXPECT(DRIVER(cuMemSetAccess)(there.address, there.bytes, &wrong, 1) == CUDA_ERROR_INVALID_VALUE);
  }
  return verdict("peers-mapped", ok);
}
