// CUDA_VISIBLE_DEVICES=2,0 with three devices: the program has two, in that order, and keeps them over a pause. The test sets its
// environment (CMakeLists.txt); without it, or with fewer devices, the program is not applicable. A process whose list contains a device
// twice has no devices. NVML numbers the devices as the list does, which are its native numbers.
#include <dlfcn.h>

#include <sys/wait.h>

#include <string>
#include <vector>

#include "driver-entry.h"

__global__ void set(int* to, int value) { *to = value; }

namespace {

std::string busOf(int device) {
  char bus[64] = "";
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, device));
  return bus;
}

bool refusesTwice() {
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    setenv("CUDA_VISIBLE_DEVICES", "0,0", 1);
    _exit(EXPECT_ERROR(cudaGetDeviceCount(&count), cudaErrorInvalidDevice) ? 0 : 1);
  }
  int status = 1;
  return EXPECT(waitpid(child, &status, 0) == child) & EXPECT(status == 0);
}

template <typename... Arguments>
int askNvml(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  auto function = library == nullptr ? nullptr : reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) std::printf("there is no %s\n", name), std::exit(1);
  return function(arguments...);
}

// The CUDA device that is NVML's device `number`; -1 if the program may not use that device.
int deviceOfNvml(unsigned number) {
  void* handle = nullptr;
  if (const int refused = askNvml("nvmlDeviceGetHandleByIndex_v2", number, &handle)) return EXPECT(refused == 4) ? -1 : -2;
  struct {
    char legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char id[32];
  } place = {};
  unsigned index = 99;
  int device = -2;
  bool ok = EXPECT(askNvml("nvmlDeviceGetIndex", handle, &index) == 0) & EXPECT(index == number);
  ok &= EXPECT(askNvml("nvmlDeviceGetPciInfo_v3", handle, static_cast<void*>(&place)) == 0);
  CHECK(cudaDeviceGetByPCIBusId(&device, place.id));
  return ok ? device : -2;
}

bool numbersAreThose() {
  unsigned all = 0, usable = 0;
  bool ok = EXPECT(askNvml("nvmlInit_v2") == 0) & EXPECT(askNvml("nvmlDeviceGetCount_v2", &all) == 0) & EXPECT(all == 3);
  ok &= EXPECT(askNvml("nvmlDeviceGetCount", &usable) == 0) & EXPECT(usable == 2);
  return ok & EXPECT(deviceOfNvml(2) == 0) & EXPECT(deviceOfNvml(0) == 1) & EXPECT(deviceOfNvml(1) == -1);
}

}  // namespace

int main() {
  if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) return notHere;
  const bool isRefused = refusesTwice();  // before this process uses CUDA
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (count != 2) return fprintf(stderr, "%d devices are visible\n", count), notHere;
  const std::string first = busOf(0), second = busOf(1);
  bool ok = isRefused & EXPECT(first > second) & EXPECT_ERROR(cudaSetDevice(2), cudaErrorInvalidDevice);
  int both[] = {0, 1}, more[] = {0, 2}, current = -1;
  CHECK(cudaSetValidDevices(both, 2));
  ok &= EXPECT_ERROR(cudaSetValidDevices(more, 2), cudaErrorInvalidDevice) & EXPECT_ERROR(cudaInitDevice(2, 0, 0), cudaErrorInvalidDevice);
  CHECK(cudaInitDevice(1, 0, 0));  // does not make it current
  CHECK(cudaGetDevice(&current));
  ok &= EXPECT(current == 0);
  int* memory[2];
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaMalloc(&memory[device], sizeof(int)));
    set<<<1, 1>>>(memory[device], 10 + device);
    CHECK(cudaDeviceSynchronize());
  }
  ok &= numbersAreThose();
  pausePoint();
  for (int device : {0, 1}) {
    int value = 0;
    CHECK(cudaSetDevice(device));
    set<<<1, 1>>>(memory[device], 20 + device);
    CHECK(cudaMemcpy(&value, memory[device], sizeof value, cudaMemcpyDeviceToHost));
    ok &= EXPECT(value == 20 + device);
  }
  return ok & numbersAreThose() & EXPECT(busOf(0) == first) & EXPECT(busOf(1) == second) ? 0 : 1;
}
