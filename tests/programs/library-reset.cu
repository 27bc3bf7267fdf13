// The GPU memory of a cuBLAS handle is freed when a reset ends the context in which it was made, and a new handle can be made afterwards.
// Each handle of the recording library of tests/libraries (VGPU_RECORD_GPU) has 32 MiB.
#include "blas.h"

int main() {
  constexpr size_t ofHandle = 32 << 20;
  auto freeBytes = [] {
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    return free;
  };
  bool ok = true;
  const size_t before = freeBytes();
  for (int i = 0; i < 3; ++i) {
    cublasHandle_t handle, other;
    BLAS(cublasCreate(&handle));
    BLAS(cublasCreate(&other));
    ok &= EXPECT(freeBytes() + 2 * ofHandle <= before);
    BLAS(cublasDestroy(other));
    CHECK(cudaDeviceReset());
    ok &= EXPECT(freeBytes() + ofHandle > before);
    ok &= EXPECT(cublasSetStream(handle, nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  }
  return verdict("library-reset", ok);
}
