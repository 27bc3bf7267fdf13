// A minimal CUDA program, in parts that the tests choose by name. It works on the recording driver, so it checks return codes only and no
// results of kernels.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>

__device__ int number = 7;
__managed__ int managed = 3;
__global__ void store(int* to) { *to = number + managed; }
template <class T>
__global__ void fill(T* to, T value) {
  to[threadIdx.x] = value;
}
__global__ void large(int* to) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = to[threadIdx.x];
}

static int say(const char* what, cudaError_t error) {
  std::printf("%s %s\n", what, cudaGetErrorName(error));
  return error == cudaSuccess ? 0 : 1;
}

static int work() {
  int *memory, value = 0;
  int failed = say("malloc", cudaMalloc(&memory, 64));
  store<<<1, 1>>>(memory);
  fill<int><<<2, 32, 16>>>(memory, 5);
  failed += say("launch", cudaGetLastError());
  failed += say("symbol", cudaMemcpyFromSymbol(&value, number, sizeof value));
  failed += say("synchronize", cudaDeviceSynchronize());
  return failed + say("free", cudaFree(memory));
}

static int forked(bool usedBefore) {
  if (usedBefore) say("before", cudaFree(nullptr));
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    say("child", cudaFree(nullptr));
    say("child-last", cudaGetLastError());
    std::fflush(stdout);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  say("parent", cudaFree(nullptr));
  return status;
}

static int lastError() {
  say("first", cudaSetDevice(99));
  say("peek", cudaPeekAtLastError());
  say("success-keeps-it", cudaFree(nullptr));
  std::thread([] { say("other-thread", cudaGetLastError()); }).join();
  say("take", cudaGetLastError());
  return say("taken", cudaGetLastError());
}

static int configurations() {
  store<<<0, 1>>>(nullptr);
  say("zero-grid", cudaGetLastError());
  store<<<1, 0>>>(nullptr);
  say("zero-block", cudaGetLastError());
  store<<<1, 2048>>>(nullptr);
  say("large-block", cudaGetLastError());
  store<<<dim3(1, 70000), 1>>>(nullptr);
  say("large-grid", cudaGetLastError());
  large<<<1, 1, 100 << 10>>>(nullptr);
  say("large-shared", cudaGetLastError());
  say("unregistered", cudaLaunchKernel((const void*)&lastError, dim3(1), dim3(1), nullptr, 0, nullptr));
  return say("fine", (cudaGetLastError(), store<<<1, 1>>>(nullptr), cudaGetLastError()));
}

// No page of the process may be writable and executable at once.
static int maps() {
  char line[512], flags[8];
  int bad = 0;
  std::FILE* file = std::fopen("/proc/self/maps", "r");
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "%*s %7s", flags) == 1 && std::strchr(flags, 'w') && std::strchr(flags, 'x')) {
      std::printf("%s", line);
      ++bad;
    }
  std::fclose(file);
  return bad;
}

// Runs after main; the order relative to libcudart's own destructors is unspecified.
struct Late {
  bool wanted = false;
  ~Late() {
    if (wanted) say("late", cudaFree(nullptr));
  }
} late;

static int reset() {
  int failed = work() + say("reset", cudaDeviceReset());
  return failed + work();
}

static int devices() {
  int device = -1;
  say("choose", cudaSetDevice(1));
  say("work", static_cast<cudaError_t>(work()));
  cudaGetDevice(&device);
  std::thread([] {
    int other = -1;
    cudaGetDevice(&other);
    std::printf("other %d\n", other);
  }).join();
  std::printf("own %d\n", device);
  return 0;
}

// If cudaSetDevice fails, the thread keeps its device.
static int refusedDevice() {
  int device = -1;
  say("choose", cudaSetDevice(1));
  cudaGetDevice(&device);
  std::printf("device %d\n", device);
  say("attribute", cudaKernelSetAttributeForDevice(reinterpret_cast<cudaKernel_t>(&store), cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, 1));
  cudaGetDevice(&device);
  std::printf("still %d\n", device);
  return work();
}

static int unsupported() {
  const void* table;
  cudaUUID_t id = {};
  say("unsupported", cudaGetExportTable(&table, &id));
  say("again", cudaGetExportTable(&table, &id));
  return say("last", cudaGetLastError());
}

// A managed variable that two devices use.
static int twoDevices() {
  work();
  cudaSetDevice(1);
  store<<<1, 1>>>(nullptr);
  say("second", cudaGetLastError());
  cudaSetDevice(0);
  store<<<1, 1>>>(nullptr);
  return say("first", cudaGetLastError());
}

int main(int count, char** arguments) {
  const char* part = count > 1 ? arguments[1] : "work";
  if (!std::strcmp(part, "nothing")) return 0;
  if (!std::strcmp(part, "work")) return work();
  if (!std::strcmp(part, "fork-before-use")) return forked(false);
  if (!std::strcmp(part, "fork-after-use")) return forked(true);
  if (!std::strcmp(part, "last-error")) return lastError();
  if (!std::strcmp(part, "configurations")) return configurations();
  if (!std::strcmp(part, "maps")) return maps();
  if (!std::strcmp(part, "reset")) return reset();
  if (!std::strcmp(part, "devices")) return devices();
  if (!std::strcmp(part, "refused-device")) return refusedDevice();
  if (!std::strcmp(part, "two-devices")) return twoDevices();
  if (!std::strcmp(part, "unsupported")) return unsupported();
  if (!std::strcmp(part, "late")) return late.wanted = true, work();
  return 2;
}
