// Environment variables of the program that decide cuBLAS's results take effect for each new handle, and again after a suspend. With the
// recording library of tests/libraries a result shows the variables with which its handle or its descriptor was made. One descriptor equals
// an earlier one, but none of the existing handles was made before it.
#include "blas.h"

#include <cstdlib>

namespace {

// A result of a handle made while the variables have these values; null: unset.
struct Made {
  cublasHandle_t handle;
  float result = 0;
  Made(const char* tf32, const char* workspace) {
    auto set = [](const char* name, const char* value) { value == nullptr ? unsetenv(name) : setenv(name, value, 1); };
    set("NVIDIA_TF32_OVERRIDE", tf32);
    set("CUBLAS_WORKSPACE_CONFIG", workspace);
    BLAS(cublasCreate(&handle));
  }
  float compute(const float* a) {
    BLAS(cublasSdot(handle, 256, a, 1, a, 1, &result));
    return result;
  }
};

// Makes the descriptor that an earlier one of its kind, whose handle a reset ended, could be reused for.
cublasLtMatmulDesc_t describeAgain() {
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  cublasLtMatmulDesc_t description;
  BLAS(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CHECK(cudaDeviceReset());
  BLAS(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  return description;
}

// The recording library's digest of everything that it knows of it.
int32_t ask(cublasLtMatmulDesc_t description) {
  int32_t value = 0;
  size_t written = 0;
  BLAS(cublasLtMatmulDescGetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &value, sizeof value, &written));
  return value;
}

}  // namespace

int main() {
  cublasLtMatmulDesc_t description = describeAgain();
  const int32_t described = ask(description);
  DeviceArray<float> a(std::vector<float>(256, 1.0f));
  Made none(nullptr, nullptr), tf32("0", nullptr), workspace(nullptr, ":4096:8"), both("0", ":4096:8"), noneAgain(nullptr, nullptr);
  bool ok = true;
  auto bitsOf = [](float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  };
  std::vector<uint32_t> before;
  for (Made* each : {&none, &tf32, &workspace, &both, &noneAgain}) before.push_back(bitsOf(each->compute(a)));
  ok &= EXPECT(before[0] != before[1] && before[0] != before[2] && before[1] != before[2]);
  ok &= EXPECT(before[3] != before[0] && before[3] != before[1] && before[3] != before[2]);
  ok &= EXPECT(before[4] == before[0]);
  pausePoint();
  ok &= EXPECT(ask(description) == described);
  size_t at = 0;
  for (Made* each : {&none, &tf32, &workspace, &both, &noneAgain}) ok &= EXPECT(bitsOf(each->compute(a)) == before[at++]);
  return verdict("library-variables", ok);
}
