// A cuBLAS call with a result in host memory, in a blocking stream, is ordered behind the legacy default stream's work, as its kernel would
// be; and while it waits, other threads' work proceeds. The recording library of tests/libraries (VGPU_RECORD_GPU) waits as cuBLAS does.
#include "await-flag.h"
#include "blas.h"

#include <thread>

int main() {
  Blas handle;
  cudaStream_t blocking, other;
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  BLAS(cublasSetStream(handle, blocking));
  DeviceArray<float> a(std::vector<float>(256, 1.0f));
  DeviceArray<int> filled(64);
  float dot = 0;
  BLAS(cublasSdot(handle, 256, a, 1, a, 1, &dot));

  std::atomic<bool> mayGoOn{false};
  bool wasBehind = false;
  CHECK(cudaLaunchHostFunc(cudaStreamLegacy, awaitFlag, &mayGoOn));
  std::thread caller([&] {
    BLAS(cublasSdot(handle, 256, a, 1, a, 1, &dot));
    wasBehind = mayGoOn;
  });
  constexpr int fills = 300;
  for (int i = 1; i <= fills; ++i) {
    CHECK(cudaMemsetAsync(filled, i & 0xff, 64 * sizeof(int), other));
    CHECK(cudaStreamSynchronize(other));
  }
  mayGoOn = true;
  caller.join();
  CHECK(cudaStreamDestroy(blocking));
  CHECK(cudaStreamDestroy(other));
  return verdict("library-held", EXPECT(wasBehind) && EXPECT((filled.download()[0] & 0xff) == (fills & 0xff)));
}
