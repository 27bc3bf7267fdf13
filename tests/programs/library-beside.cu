// While one thread waits for a library's first handle, because the library loads slowly, the other thread's kernels run on the same GPU.
// The recording library of tests/libraries (VGPU_RECORD_HOLD) makes no handle until this program, after it has seen that the library was
// called, tells it to; they use files in the test's folder.
#include "blas.h"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

__global__ void add(int* sum, int value) { *sum += value; }

int main() {
  const char* folder = std::getenv("VGPU_TEST_RUN");
  if (folder == nullptr) return notHere;
  std::string called = std::string(folder) + "/library-called", go = std::string(folder) + "/library-go";

  DeviceArray<int> sum(std::vector<int>{0});
  add<<<1, 1>>>(sum, 0);  // loads the kernel's module, which would otherwise wait for the library
  CHECK(cudaDeviceSynchronize());
  cublasHandle_t handle = nullptr;
  cublasStatus_t status = CUBLAS_STATUS_INTERNAL_ERROR;
  std::atomic<bool> isMade = false;
  std::thread maker([&] { status = cublasCreate(&handle), isMade = true; });
  while (access(called.c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  constexpr int launches = 100;
  for (int i = 0; i < launches; ++i) {
    add<<<1, 1>>>(sum, i);
    CHECK(cudaDeviceSynchronize());
  }
  bool wasBeside = !isMade;
  std::ofstream(go) << "go\n";
  maker.join();
  BLAS(status);
  BLAS(cublasDestroy(handle));
  bool isRight = sum.download()[0] == launches * (launches - 1) / 2;
  if (!wasBeside) std::puts("the kernels have waited for the library");
  return verdict("library-beside", isRight && wasBeside);
}
