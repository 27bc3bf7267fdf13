// A kernel that accesses reserved addresses without access rights: CUDA's illegal address error (700), and no error before.
#include <string>

#include "driver-entry.h"

__global__ void write(int* place) { *place = 1; }
__global__ void readInto(const int* place, int* out) { *out = *place; }

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "read-only";
  size_t bytes = 0;
  CUmemAllocationProp properties{};
  CUmemGenericAllocationHandle memory = 0;
  CUdeviceptr address = 0;
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CHECK(cudaFree(nullptr));
  CALL(cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  CALL(cuMemAddressReserve, &address, bytes, 0, 0, 0);
  CALL(cuMemCreate, &memory, bytes, &properties, 0);
  if (what != "unmapped") CALL(cuMemMap, address, bytes, 0, memory, 0);
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READ};
  if (what == "read-only") CALL(cuMemSetAccess, address, bytes, &access, 1);
  auto* place = reinterpret_cast<int*>(address);
  int* out;
  CHECK(cudaMalloc(&out, sizeof *out));
  bool ok = true;
  if (what == "read-only") {
    readInto<<<1, 1>>>(place, out);
    ok &= EXPECT_ERROR(cudaDeviceSynchronize(), cudaSuccess);
  }
  write<<<1, 1>>>(place);
  ok &= EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return verdict("virtual-memory-fault", ok);
}
