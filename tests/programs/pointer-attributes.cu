// Pointer attributes that a program sets, or that return its own values: the size of an allocation is the requested one, and synchronous
// operations on memory with CU_POINTER_ATTRIBUTE_SYNC_MEMOPS are complete when they return. Allocations and mappings have ids.
#include "exported-entry.h"

#include <algorithm>
#include <set>

namespace {

constexpr size_t oddBytes = 1001;

size_t sizeOf(void* memory) {
  size_t range = 0, size = 0;
  CUdeviceptr begin = 0;
  auto address = reinterpret_cast<CUdeviceptr>(memory);
  bool ok = WORKS(cuPointerGetAttribute, &range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
  ok &= WORKS(cuMemGetAddressRange_v2, &begin, &size, address + 7) && EXPECT(begin == address) && EXPECT(range == size);
  return ok ? range : 0;
}

unsigned isSynchronous(void* memory) {
  unsigned value = 99;
  WORKS(cuPointerGetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(memory));
  return value;
}

bool set(void* memory, unsigned value, CUresult expected = CUDA_SUCCESS) {
  return GIVES(expected, cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(memory));
}

// Holds the default stream for a while with a host function: an operation that waits returns when that has run.
struct Slow {
  explicit Slow(std::atomic<bool>& done) : done(done) {
    done = false;
    CHECK(cudaLaunchHostFunc(
        nullptr,
        [](void* data) {
          usleep(20000);
          *static_cast<std::atomic<bool>*>(data) = true;
        },
        &done));
  }
  std::atomic<bool>& done;
};

bool operationsWait(char* memory, char* other) {
  std::atomic<bool> done{false};
  char byte = 5;
  bool ok = true;
  auto behindSlow = [&](auto&& operation) {
    Slow slow(done);
    operation();
    ok &= EXPECT(done);
    CHECK(cudaDeviceSynchronize());
  };
  behindSlow([&] { CHECK(cudaMemset(memory, 3, oddBytes)); });
  behindSlow([&] { CHECK(cudaMemset2D(memory, 100, 3, 50, 10)); });
  behindSlow([&] { CHECK(cudaMemset3D(make_cudaPitchedPtr(memory, 50, 50, 4), 3, make_cudaExtent(50, 3, 2))); });
  behindSlow([&] { CHECK(cudaMemcpy(other, memory, oddBytes, cudaMemcpyDeviceToDevice)); });
  behindSlow([&] { CHECK(cudaMemcpy(memory, other, oddBytes, cudaMemcpyDeviceToDevice)); });
  behindSlow([&] { CHECK(cudaMemcpy(memory, &byte, 1, cudaMemcpyHostToDevice)); });
  char seen[2]{};
  CHECK(cudaMemcpy(seen, memory, 2, cudaMemcpyDeviceToHost));
  return ok & EXPECT(seen[0] == 5) & EXPECT(seen[1] == 3);
}

unsigned long long idOf(const void* memory, CUpointer_attribute which = CU_POINTER_ATTRIBUTE_BUFFER_ID) {
  unsigned long long id = 0;
  WORKS(cuPointerGetAttribute, &id, which, reinterpret_cast<CUdeviceptr>(memory));
  return id;
}

// Collects ids, and returns whether the memory's id was new.
std::set<unsigned long long> ids;
bool isNew(const void* memory) { return EXPECT(ids.insert(idOf(memory)).second); }

// An allocation has an id that no other one has or had, at that address or elsewhere, for the lifetime of the process.
template <typename Make, typename End>
bool idsAreNotReused(Make make, End end) {
  bool ok = true;
  std::set<char*> places;
  for (int i = 0; i < 3; ++i) {
    char* memory = make();
    places.insert(memory);
    ok &= isNew(memory) & EXPECT(idOf(memory) == idOf(memory + oddBytes - 1));
    end(memory);
  }
  return ok & EXPECT(places.size() == 1);  // otherwise the test shows little
}

char registered[3 * 4096];

bool allocationsHaveIds() {
  char* memory = nullptr;
  bool ok = idsAreNotReused([&] { return CHECK(cudaMalloc(&memory, oddBytes)), memory; }, [](char* m) { CHECK(cudaFree(m)); });
  ok &= idsAreNotReused([&] { return CHECK(cudaMallocHost(&memory, oddBytes)), memory; }, [](char* m) { CHECK(cudaFreeHost(m)); });
  ok &= idsAreNotReused([&] { return CHECK(cudaMallocManaged(&memory, oddBytes)), memory; }, [](char* m) { CHECK(cudaFree(m)); });
  // Nor does it keep attributes that were set for the previous one.
  ok &= idsAreNotReused([&] { return CHECK(cudaMallocAsync(&memory, oddBytes, nullptr)), memory; },
                        [&](char* m) {
                          ok &= EXPECT(isSynchronous(m) == 0) & set(m, 1);
                          CHECK(cudaFreeAsync(m, nullptr));
                        });
  char* const place = registered + 4096;
  return ok & idsAreNotReused([&] { return CHECK(cudaHostRegister(place, 4096, 0)), place; },
                              [](char* m) { CHECK(cudaHostUnregister(m)); });
}

// A mapping of physical memory has an id too, and the physical memory has its own, the same wherever it is mapped.
bool mappingsHaveIds() {
  constexpr auto block = CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  size_t bytes = 0;
  CUmemGenericAllocationHandle first{}, second{};
  CUdeviceptr address = 0;
  bool ok = WORKS(cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) &&
            WORKS(cuMemCreate, &first, bytes, &properties, 0) && WORKS(cuMemCreate, &second, bytes, &properties, 0) &&
            WORKS(cuMemAddressReserve, &address, 3 * bytes, 0, 0, 0);
  CUmemGenericAllocationHandle order[] = {first, first, second};
  for (size_t i = 0; ok && i < 3; ++i) ok = WORKS(cuMemMap, address + i * bytes, bytes, 0, order[i], 0);
  auto at = [&](size_t i) { return reinterpret_cast<char*>(address + i * bytes); };
  for (size_t i : {0, 1, 2}) ok = ok && isNew(at(i));
  const unsigned long long before = idOf(at(0), block);
  ok = ok && EXPECT(before == idOf(at(1), block)) & EXPECT(before != idOf(at(2), block));
  ok = ok && WORKS(cuMemUnmap, address, bytes) && WORKS(cuMemMap, address, bytes, 0, first, 0) && isNew(at(0));
  ok = ok && EXPECT(before == idOf(at(0), block)) && WORKS(cuMemUnmap, address, 3 * bytes);
  return ok && WORKS(cuMemAddressFree, address, 3 * bytes) && WORKS(cuMemRelease, first) && WORKS(cuMemRelease, second);
}

}  // namespace

int main() {
  char *memory = nullptr, *other = nullptr, *host = nullptr, *managed = nullptr;
  CHECK(cudaMalloc(&memory, oddBytes));
  CHECK(cudaMalloc(&other, oddBytes));
  CHECK(cudaMallocHost(&host, oddBytes));
  CHECK(cudaMallocManaged(&managed, oddBytes));
  bool ok = true;
  std::vector<unsigned long long> known;
  for (char* each : {memory, other, host, managed}) {
    ok &= EXPECT(sizeOf(each) == oddBytes) & isNew(each);
    known.push_back(idOf(each));
  }
  ok &= allocationsHaveIds() & mappingsHaveIds();
  ok &= EXPECT(isSynchronous(memory) == 0) & set(memory + 100, 1) & EXPECT(isSynchronous(memory) == 1);
  ok &= EXPECT(isSynchronous(other) == 0);
  ok &= operationsWait(memory, other);
  pausePoint();
  for (char* each : {memory, other, host, managed}) known.push_back(idOf(each));
  ok &= EXPECT(std::equal(known.begin(), known.begin() + 4, known.begin() + 4)) & allocationsHaveIds() & mappingsHaveIds();
  ok &= EXPECT(sizeOf(memory) == oddBytes) & EXPECT(isSynchronous(memory) == 1) & operationsWait(memory, other);
  ok &= set(memory, 0) & EXPECT(isSynchronous(memory) == 0) & set(host, 1);
  ok &= set(memory, 2) & set(&ok, 1, CUDA_ERROR_INVALID_VALUE);
  ok &= set(nullptr, 1, CUDA_ERROR_INVALID_VALUE);
  const unsigned one = 1;
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute, &one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute, nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
  // An attribute set for an allocation ends with it.
  ok &= set(other, 1);
  CHECK(cudaFree(other));
  CHECK(cudaMalloc(&other, oddBytes));
  ok &= EXPECT(isSynchronous(other) == 0);
  CHECK(cudaFree(memory));
  CHECK(cudaFree(other));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(managed));
  return verdict("pointer-attributes", ok);
}
