// cuBLASLt's matrix product with its epilogues, with the heuristic's algorithm, and with objects made before the pause and used after it.
#include <string>

#include "blas.h"

constexpr int m = 128, n = 96, k = 64;
constexpr size_t workspaceBytes = 4 << 20;

struct Product {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t chosen{};
  DeviceArray<__half> left{numbers<__half>(m * k)}, right{numbers<__half>(k * n, 3)}, out{numbers<__half>(m * n, 5)};
  DeviceArray<__half> bias{numbers<__half>(m, 8)};
  DeviceArray<char> workspace{workspaceBytes};
  cudaStream_t stream = nullptr;

  explicit Product(cublasLtEpilogue_t epilogue) {
    cublasStatus_t status = cublasLtCreate(&handle);
    if (status == CUBLAS_STATUS_NOT_INITIALIZED) std::exit(notHere);
    BLAS(status);
    CHECK(cudaStreamCreate(&stream));
    BLAS(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    BLAS(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    const void* address = bias;
    if (epilogue & CUBLASLT_EPILOGUE_BIAS)  // the library refuses a bias for other epilogues
      BLAS(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof address));
    BLAS(cublasLtMatrixLayoutCreate(&a, CUDA_R_16F, m, k, m));
    BLAS(cublasLtMatrixLayoutCreate(&b, CUDA_R_16F, k, n, k));
    BLAS(cublasLtMatrixLayoutCreate(&c, CUDA_R_16F, m, n, m));
    BLAS(cublasLtMatmulPreferenceCreate(&preference));
    BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspaceBytes,
                                              sizeof workspaceBytes));
    choose();
  }
  ~Product() {
    BLAS(cublasLtMatmulPreferenceDestroy(preference));
    BLAS(cublasLtMatrixLayoutDestroy(a));
    BLAS(cublasLtMatrixLayoutDestroy(b));
    BLAS(cublasLtMatrixLayoutDestroy(c));
    BLAS(cublasLtMatmulDescDestroy(description));
    BLAS(cublasLtDestroy(handle));
    CHECK(cudaStreamDestroy(stream));
  }

  void choose() {
    int found = 0;
    BLAS(cublasLtMatmulAlgoGetHeuristic(handle, description, a, b, c, c, preference, 1, &chosen, &found));
    if (found != 1) std::exit(1);
  }

  void run(const std::string& name) {
    const float alpha = 0.5f, beta = 1;
    for (int again = 0; again < 3; ++again)
      BLAS(cublasLtMatmul(handle, description, &alpha, left, a, right, b, &beta, out, c, out, c, &chosen.algo, workspace,
                          workspaceBytes, stream));
    // A vector of alphas on the device, and no beta.
    int32_t mode = CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO, usual = CUBLASLT_POINTER_MODE_HOST;
    DeviceArray<float> alphas(numbers<float>(m, 2));
    BLAS(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode));
    cublasLtMatmulHeuristicResult_t other;
    int found = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, description, a, b, c, c, preference, 1, &other, &found);
    std::printf("%s vector %d %d\n", name.c_str(), static_cast<int>(status), found);
    if (status == CUBLAS_STATUS_SUCCESS && found == 1)
      BLAS(cublasLtMatmul(handle, description, alphas, left, a, right, b, nullptr, out, c, out, c, &other.algo, workspace,
                          workspaceBytes, stream));
    BLAS(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_POINTER_MODE, &usual, sizeof usual));
    CHECK(cudaStreamSynchronize(stream));
    printDigest(name, out);
  }
};

int main() {
  const std::pair<cublasLtEpilogue_t, const char*> epilogues[] = {
      {CUBLASLT_EPILOGUE_DEFAULT, "plain"},          {CUBLASLT_EPILOGUE_BIAS, "bias"}, {CUBLASLT_EPILOGUE_RELU, "relu"},
      {CUBLASLT_EPILOGUE_GELU, "gelu"},              {CUBLASLT_EPILOGUE_RELU_BIAS, "relu and bias"},
      {CUBLASLT_EPILOGUE_GELU_BIAS, "gelu and bias"}};
  std::vector<std::unique_ptr<Product>> products;
  for (auto& [epilogue, name] : epilogues) {
    products.push_back(std::make_unique<Product>(epilogue));
    products.back()->run(name);
  }
  pausePoint();
  for (size_t i = 0; i < products.size(); ++i) {
    products[i]->run(std::string("again ") + epilogues[i].second);
    products[i]->choose();
    products[i]->run(std::string("chosen again ") + epilogues[i].second);
  }
  return 0;
}
