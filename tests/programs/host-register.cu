// The program's own memory, registered: the GPU reads and writes it in place, copies need no staging, and no byte, also beside it on its
// pages, is lost before, during or after the registration, whichever side writes.
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstring>
#include <thread>

#include "await-flag.h"
#include "program.h"

__global__ void increment(int* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) ++data[i];
}

namespace {

constexpr int count = 700 * 1000;  // several pages, the last one partial

int* onDevice(int* host) {
  int* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  return device;
}

void launch(int* data) { increment<<<(count + 255) / 256, 256>>>(data, count); }

// Whether data[i] == i + more for all i.
bool holds(const int* data, int more) {
  for (int i = 0; i < count; ++i)
    if (data[i] != i + more) {
      std::fprintf(stderr, "data[%d] is %d, expected %d\n", i, data[i], i + more);
      return false;
    }
  return true;
}

// Threads that write beside the memory and into it while it is registered and unregistered.
class Writers {
 public:
  Writers(std::atomic<long>* beside, std::atomic<long>* inside)
      : first([=] { count(beside, ended, besideCount); }), second([=] { count(inside, ended, insideCount); }) {}
  // Their counts match the memory: no write was lost.
  bool lostNothing(const std::atomic<long>* beside, const std::atomic<long>* inside) {
    ended = true;
    first.join();
    second.join();
    return EXPECT(beside->load() == besideCount) & EXPECT(inside->load() == insideCount);
  }

 private:
  static void count(std::atomic<long>* word, const std::atomic<bool>& ended, long& counted) {
    for (counted = 0; !ended; ++counted) word->fetch_add(1);
  }
  std::atomic<bool> ended{false};
  long besideCount = 0, insideCount = 0;
  std::thread first, second;
};

bool losesNoWrite() {
  std::vector<long> memory(1 << 20, 0);
  auto* words = reinterpret_cast<std::atomic<long>*>(memory.data());
  Writers writers(words, words + memory.size() / 2);
  bool ok = true;
  for (int i = 0; i < 10; ++i) {
    CHECK(cudaHostRegister(memory.data() + 1, (memory.size() - 2) * sizeof(long), cudaHostRegisterDefault));
    CHECK(cudaHostUnregister(memory.data() + 1));
  }
  return ok & writers.lostNothing(words, words + memory.size() / 2);
}

// A forked child has a copy, as of any memory.
bool isCopiedByFork(int* data) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const bool same = holds(data, 2);
    data[0] = data[count - 1] = -1;
    _exit(same ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0) & holds(data, 2);
}

// A shared file mapping cannot be moved into the GPU's memory; it is registered in place, and copied.
bool takesSharedMemory() {
  constexpr size_t bytes = 1 << 20;
  auto* shared = static_cast<int*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  shared[1000] = 5;
  int got = 0;
  DeviceArray<int> data(bytes / sizeof(int));
  CHECK(cudaHostRegister(shared, bytes, cudaHostRegisterPortable));
  CHECK(cudaMemcpyAsync(data, shared, bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(&got, data + 1000, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaHostUnregister(shared));
  munmap(shared, bytes);
  return EXPECT(got == 5);
}

bool answersErrors(int* data) {
  unsigned flags = 0;
  cudaPointerAttributes facts;
  CHECK(cudaHostGetFlags(&flags, data));
  CHECK(cudaPointerGetAttributes(&facts, data + 10));
  bool ok = EXPECT((flags & cudaHostRegisterMapped) != 0) & EXPECT(facts.type == cudaMemoryTypeHost);
  ok &= EXPECT_ERROR(cudaHostRegister(data, 4096, 0), cudaErrorHostMemoryAlreadyRegistered) &
        EXPECT_ERROR(cudaHostRegister(nullptr, 4096, 0), cudaErrorInvalidValue) &
        EXPECT_ERROR(cudaHostRegister(reinterpret_cast<void*>(-uintptr_t{4096}), 4095, 0), cudaErrorNotSupported) &
        EXPECT_ERROR(cudaHostUnregister(&flags), cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();
  return ok;
}

// Memory whose pages cannot be replaced: an initialized variable, and the caller's stack.
int initialised[5000] = {1};

// A copy to the device reads the memory when its stream reaches the copy: an earlier host function in the stream has written it. Another
// thread's host function that is held meanwhile does not delay the copy.
bool isReadInOrder(int* data, size_t values) {
  struct Writing {
    int* data;
    size_t values;
    std::atomic<bool> mayGoOn;
  } writing{data, values, false};
  std::atomic<bool> otherMayGoOn{false};
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  DeviceArray<int> device(values);
  CHECK(cudaHostRegister(data, values * sizeof(int), cudaHostRegisterDefault));
  auto write = [](void* argument) {
    auto& writing = *static_cast<Writing*>(argument);
    awaitFlag(&writing.mayGoOn);
    for (size_t i = 0; i < writing.values; ++i) writing.data[i] = static_cast<int>(i) + 3;
  };
  CHECK(cudaLaunchHostFunc(stream, write, &writing));
  CHECK(cudaLaunchHostFunc(other, awaitFlag, &otherMayGoOn));
  CHECK(cudaMemcpyAsync(device, data, values * sizeof(int), cudaMemcpyHostToDevice, stream));
  writing.mayGoOn = true;
  CHECK(cudaStreamSynchronize(stream));
  otherMayGoOn = true;
  const std::vector<int> got = device.download();
  bool ok = true;
  for (size_t i = 0; i < values; ++i) ok &= got[i] == static_cast<int>(i) + 3;
  CHECK(cudaHostUnregister(data));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaStreamDestroy(other));
  return EXPECT(ok);
}

__global__ void takeTime(int* out, int steps) {
  unsigned value = steps;
  for (int i = 0; i < steps; ++i) {
    value = value * 1664525 + 1013904223;
    asm volatile("" : "+r"(value));
  }
  *out = static_cast<int>(value);
}

// With pageable memory the call may return before the copy is complete, with registered memory not.
bool isMadeAtReturn(int* data, size_t values) {
  DeviceArray<int> device(values), out(1);
  CHECK(cudaHostRegister(data, values * sizeof(int), cudaHostRegisterDefault));
  CHECK(cudaDeviceSynchronize());
  takeTime<<<1, 1>>>(out, 3'000'000);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(device, data, values * sizeof(int), cudaMemcpyHostToDevice));
  const bool ok = EXPECT(cudaStreamQuery(cudaStreamLegacy) == cudaSuccess);
  CHECK(cudaHostUnregister(data));
  return ok;
}

bool isEverythingMadeAtReturn() {
  int onStack[700] = {};
  std::vector<int> adopted(100'000);
  return isMadeAtReturn(initialised, 5000) & isMadeAtReturn(onStack, 700) & isMadeAtReturn(adopted.data(), adopted.size());
}

bool isEverythingReadInOrder() {
  int onStack[700] = {};
  std::vector<int> adopted(100'000);
  return isReadInOrder(initialised, 5000) & isReadInOrder(onStack, 700) & isReadInOrder(adopted.data(), adopted.size());
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  std::vector<int> memory(count + 8);
  int* const data = memory.data() + 3;
  for (int i = 0; i < count; ++i) data[i] = i;
  memory[2] = memory[count + 3] = 77;

  CHECK(cudaHostRegister(data, count * sizeof(int), cudaHostRegisterMapped));
  bool ok = holds(data, 0) & EXPECT(onDevice(data) == data) & answersErrors(data);
  launch(onDevice(data));
  CHECK(cudaDeviceSynchronize());
  ok &= holds(data, 1);
  for (int i = 0; i < count; ++i) ++data[i];
  ok &= isCopiedByFork(data);

  pausePoint();
  ok &= holds(data, 2);
  launch(onDevice(data));
  CHECK(cudaDeviceSynchronize());
  ok &= holds(data, 3);

  DeviceArray<int> device(count);
  CHECK(cudaMemcpyAsync(device, data, count * sizeof(int), cudaMemcpyHostToDevice));
  launch(device);
  CHECK(cudaMemcpyAsync(data, device, count * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaDeviceSynchronize());
  ok &= holds(data, 4);
  CHECK(cudaHostUnregister(data));
  ok &= holds(data, 4) & EXPECT(memory[2] == 77 && memory[count + 3] == 77);

  // It can be registered again any number of times.
  CHECK(cudaHostRegister(data, count * sizeof(int), cudaHostRegisterDefault));
  launch(onDevice(data));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaHostUnregister(data));
  ok &= holds(data, 5) & takesSharedMemory() & losesNoWrite() & isEverythingReadInOrder() & isEverythingMadeAtReturn();
  return verdict("host-register", ok);
}
