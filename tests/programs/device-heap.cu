// Memory that kernels allocate on the device's heap and keep from launch to launch.
#include "program.h"

constexpr int count = 64;

__device__ int* kept[count];

__global__ void take() {
  const int i = threadIdx.x;
  kept[i] = static_cast<int*>(malloc(sizeof(int)));
  if (kept[i] != nullptr) *kept[i] = i * i;
}

__global__ void give(int* values) {
  const int i = threadIdx.x;
  values[i] = kept[i] != nullptr ? *kept[i] : -1;
  free(kept[i]);
}

int main() {
  take<<<1, count>>>();
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  DeviceArray<int> values(count);
  give<<<1, count>>>(values);
  CHECK(cudaGetLastError());
  std::vector<int> expected(count);
  for (int i = 0; i < count; ++i) expected[i] = i * i;
  return verdict("device-heap", same("values", values.download(), expected));
}
