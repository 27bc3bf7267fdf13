// cuLaunchCooperativeKernelMultiDevice on two devices: each kernel waits for earlier work in the streams of both, and later work in either
// stream waits for both kernels, unless the flags say otherwise. Not applicable with one device.
#include "driver-entry.h"

// Each thread first waits for about that many clock cycles.
__global__ void setLater(int* to, int value, long long cycles) {
  for (const long long begin = clock64(); clock64() - begin < cycles;) {
  }
  to[0] = to[1] = value;
}
__global__ void increase(int* mine, int* place) {
  *mine += 1;
  *place += 1;
}
__global__ void copy(int* to, const int* from) { *to = from[0] + from[1]; }

namespace {

struct Device {
  cudaStream_t stream;
  int *mine, *seen, *place;
  void* arguments[2];
  CUDA_LAUNCH_PARAMS launch;
};

// A slow kernel of device 0 sets `both`, a slot for each device in host memory, where devices have no atomics; each kernel adds to its own
// slot, and later work on either device sees both.
bool areTogether(Device (&devices)[2], int* both, int before) {
  CUDA_LAUNCH_PARAMS launches[] = {devices[0].launch, devices[1].launch};
  CHECK(cudaSetDevice(0));
  setLater<<<1, 1, 0, devices[0].stream>>>(both, 10, 20'000'000);
  CALL(cuLaunchCooperativeKernelMultiDevice, launches, 2, 0);
  bool ok = true;
  for (int number : {0, 1}) {
    CHECK(cudaSetDevice(number));
    copy<<<1, 1, 0, devices[number].stream>>>(devices[number].seen, both);
  }
  for (Device& device : devices) {
    int seen = 0, mine = 0;
    CHECK(cudaStreamSynchronize(device.stream));
    CHECK(cudaMemcpy(&seen, device.seen, sizeof seen, cudaMemcpyDefault));
    CHECK(cudaMemcpy(&mine, device.mine, sizeof mine, cudaMemcpyDefault));
    ok &= EXPECT(seen == 22) & EXPECT(mine == before + 1);
  }
  return ok;
}

}  // namespace

int main() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (count < 2) return notHere;
  int* both = nullptr;
  CHECK(cudaHostAlloc(&both, 2 * sizeof *both, cudaHostAllocPortable | cudaHostAllocMapped));
  Device devices[2];
  for (int number : {0, 1}) {
    Device& device = devices[number];
    CUfunction function = nullptr;
    CHECK(cudaSetDevice(number));
    CHECK(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device.mine, sizeof(int)));
    CHECK(cudaMalloc(&device.seen, sizeof(int)));
    CHECK(cudaMemset(device.mine, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(increase)));
    device.arguments[0] = &device.mine;
    device.place = both + number;
    device.arguments[1] = &device.place;
    device.launch = {function, 1, 1, 1, 1, 1, 1, 0, device.stream, device.arguments};
  }
  bool ok = areTogether(devices, both, 0);
  pausePoint();
  ok &= areTogether(devices, both, 1);
  // Without waiting for each other: each device has its own order.
  CUDA_LAUNCH_PARAMS launches[] = {devices[0].launch, devices[1].launch};
  CALL(cuLaunchCooperativeKernelMultiDevice, launches, 2, 3);
  for (int number : {0, 1}) CHECK(cudaStreamSynchronize(devices[number].stream));
  return ok & EXPECT(both[0] == 12) & EXPECT(both[1] == 12) ? 0 : 1;
}
