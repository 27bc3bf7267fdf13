// Calls while the program is out of memory: each of their allocations fails in turn. The call fails or succeeds, and everything else works
// afterwards.
#include "program.h"

namespace {
thread_local long allowed = -1;  // allocations of this thread before one fails; negative: none fails
thread_local bool failed = false;

}  // namespace

// Replaces the C library's malloc in the whole process: vgpu's libraries have their own operator new, which calls it.
extern "C" void* __libc_malloc(size_t bytes);
void* limitedMalloc(size_t bytes) __asm__("malloc");  // under another name, because nvcc declares its own malloc for the device
void* limitedMalloc(size_t bytes) {
  if (allowed == 0) {
    failed = true;
    allowed = -1;
    return nullptr;
  }
  if (allowed > 0) --allowed;
  return __libc_malloc(bytes);
}

namespace {

__global__ void add(int* sum, int number) { atomicAdd(sum, number); }

__global__ void work(int* data, int steps) {
  for (int i = 0; i < steps; ++i) *const_cast<volatile int*>(data) = i;
}

// Calls `call` with its first allocation failing, then its second, until it makes no more allocations.
template <typename Call, typename Undo>
bool refusesOrWorks(const char* what, Call call, Undo undo) {
  for (int number = 0; number < 1000; ++number) {
    allowed = number;
    failed = false;
    const cudaError_t result = call();
    allowed = -1;
    if (result == cudaSuccess) undo();
    if (result != cudaSuccess && !(failed && result == cudaErrorMemoryAllocation)) {
      std::fprintf(stderr, "%s, allocation %d: %s\n", what, number, cudaGetErrorName(result));
      return false;
    }
    cudaGetLastError();
    if (!failed) return true;
  }
  std::fprintf(stderr, "%s allocates without end\n", what);
  return false;
}

}  // namespace

int main() {
  DeviceArray<int> sum(std::vector<int>{0});
  int *memory, *pinned, launches = 0;
  cudaStream_t stream, made;
  cudaEvent_t event;
  cudaArray_t array;
  std::vector<int> values(1 << 18, 1);
  const cudaChannelFormatDesc ofInts = cudaCreateChannelDesc<int>();
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&memory, 1 << 20));
  auto nothing = [] {};
  bool ok = refusesOrWorks("cudaStreamCreate", [&] { return cudaStreamCreate(&made); }, [&] { cudaStreamDestroy(made); });
  ok &= refusesOrWorks("cudaEventCreate", [&] { return cudaEventCreate(&event); }, [&] { cudaEventDestroy(event); });
  for (size_t bytes : {size_t{100}, size_t{16} << 20}) {
    int* other;
    ok &= refusesOrWorks("cudaMalloc", [&] { return cudaMalloc(&other, bytes); }, [&] { cudaFree(other); });
    ok &= refusesOrWorks("cudaMallocAsync", [&] { return cudaMallocAsync(&other, bytes, stream); },
                         [&] { cudaFreeAsync(other, stream); });
  }
  ok &= refusesOrWorks("cudaMallocHost", [&] { return cudaMallocHost(&pinned, 1 << 20); }, [&] { cudaFreeHost(pinned); });
  ok &= refusesOrWorks("cudaMallocArray", [&] { return cudaMallocArray(&array, &ofInts, 64, 64); },
                       [&] { cudaFreeArray(array); });
  ok &= refusesOrWorks("a launch", [&] {
    add<<<1, 1, 0, stream>>>(sum, 1);
    const cudaError_t result = cudaGetLastError();
    launches += result == cudaSuccess;
    return result;
  }, nothing);
  ok &= refusesOrWorks("cudaLaunchHostFunc", [&] { return cudaLaunchHostFunc(stream, [](void*) {}, nullptr); }, nothing);
  ok &= refusesOrWorks("a copy to the device", [&] {
    return cudaMemcpyAsync(memory, values.data(), 1 << 20, cudaMemcpyHostToDevice, stream);
  }, nothing);
  ok &= refusesOrWorks("a copy to the host", [&] {
    return cudaMemcpyAsync(values.data(), memory, 1 << 20, cudaMemcpyDeviceToHost, stream);
  }, nothing);
  ok &= refusesOrWorks("cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); }, nothing);
  // A free waits for the device, and that works. Memory that it was returning may leak, but nothing else.
  for (int number = 0; number < 20; ++number) {
    int* other;
    CHECK(cudaMalloc(&other, 1000));
    work<<<1, 1, 0, stream>>>(other, 100'000);
    allowed = number;
    const cudaError_t result = cudaFree(other);
    allowed = -1;
    if (result != cudaSuccess && result != cudaErrorMemoryAllocation) {
      std::fprintf(stderr, "cudaFree, allocation %d: %s\n", number, cudaGetErrorName(result));
      ok = false;
    }
  }
  cudaGetLastError();
  // No address is both free and in use, also after unused memory was returned.
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMemPoolTrimTo(pool, 0));
  for (size_t bytes : {size_t{1000}, size_t{1} << 20, size_t{16} << 20}) {
    std::vector<int*> many(64);
    for (int*& one : many) CHECK(cudaMalloc(&one, bytes));
    for (int* one : many) ok &= EXPECT(cudaFree(one) == cudaSuccess);
  }
  pausePoint();
  add<<<1, 1, 0, stream>>>(sum, 1000);
  CHECK(cudaStreamSynchronize(stream));
  return verdict("no-memory", ok & same("sum", sum.download(), {launches + 1000}) & EXPECT(values[99] == 1));
}
