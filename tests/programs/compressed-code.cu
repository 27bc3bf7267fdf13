// Machine code for several GPUs and PTX in one image, all compressed: the code that the driver chooses runs, with its variables, before and
// after a suspend.
#include "program.h"

__device__ int runs = 40;
__constant__ int step = 1;

__global__ void count(int* out) {
  runs += step;
  out[0] = runs;
#ifdef __CUDA_ARCH__
  out[1] = __CUDA_ARCH__ / 10;
#endif
}

// The code for the device's major version and the highest minor version that is not above the device's; else the PTX, which is for 7.5. The
// emulated device only runs PTX.
static int codeForDevice() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  const bool isEmulated = strstr(device.name, "emulated") != nullptr;
  int best = 75;
  for (int code : {80, 86, 90})
    if (!isEmulated && code / 10 == device.major && code <= 10 * device.major + device.minor) best = code;
  return best;
}

static bool runsOnce(int wanted) {
  int *out = nullptr, found[2] = {};
  CHECK(cudaMalloc(&out, sizeof found));
  count<<<1, 1>>>(out);
  CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(out));
  if (found[0] == wanted && found[1] == codeForDevice()) return true;
  fprintf(stderr, "run %d of %d, by code for %d of %d\n", found[0], wanted, found[1], codeForDevice());
  return false;
}

int main() {
  if (!runsOnce(41)) return 1;
  pausePoint();
  if (!runsOnce(42)) return 1;
  int more = 10, now = 0;
  CHECK(cudaMemcpyToSymbol(step, &more, sizeof more));
  if (!runsOnce(52)) return 1;
  CHECK(cudaMemcpyFromSymbol(&now, runs, sizeof now));
  return now == 52 ? 0 : 1;
}
