// Attributes of pointers that a program sets or asks for its own sizes with: the size of an allocation is what was asked for, and
// synchronous operations on memory with CU_POINTER_ATTRIBUTE_SYNC_MEMOPS are over when they return.
#include "exported-entry.h"

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

// Holds the default stream for a while behind a host function: an operation that waits returns when that has run.
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

}  // namespace

int main() {
  char *memory = nullptr, *other = nullptr, *host = nullptr, *managed = nullptr;
  CHECK(cudaMalloc(&memory, oddBytes));
  CHECK(cudaMalloc(&other, oddBytes));
  CHECK(cudaMallocHost(&host, oddBytes));
  CHECK(cudaMallocManaged(&managed, oddBytes));
  bool ok = true;
  for (char* each : {memory, other, host, managed}) ok &= EXPECT(sizeOf(each) == oddBytes);
  ok &= EXPECT(isSynchronous(memory) == 0) & set(memory + 100, 1) & EXPECT(isSynchronous(memory) == 1);
  ok &= EXPECT(isSynchronous(other) == 0);
  ok &= operationsWait(memory, other);
  pausePoint();
  ok &= EXPECT(sizeOf(memory) == oddBytes) & EXPECT(isSynchronous(memory) == 1) & operationsWait(memory, other);
  ok &= set(memory, 0) & EXPECT(isSynchronous(memory) == 0) & set(host, 1);
  ok &= set(memory, 2) & set(&ok, 1, CUDA_ERROR_INVALID_VALUE);
  ok &= set(nullptr, 1, CUDA_ERROR_INVALID_VALUE);
  const unsigned one = 1;
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute, &one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute, nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
  // What was said of an allocation ends with it.
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
