// Matrix products in captured streams: after the pause their graphs are launched with other data, while the handle has other settings.
#include <string>

#include "blas.h"

constexpr int n = 192;

struct Matrices {
  DeviceArray<float> a{numbers<float>(n * n)}, b{numbers<float>(n * n, 3)}, c{numbers<float>(n * n, 5)};
};

// With descriptors that are destroyed before the graph is instantiated.
void multiplyByLt(cublasLtHandle_t handle, Matrices& m, void* workspace, cudaStream_t stream) {
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulPreference_t preference;
  BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU;
  BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, n, n, n));
  BLAS(cublasLtMatmulPreferenceCreate(&preference));
  size_t bytes = 1 << 20;
  BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  BLAS(cublasLtMatmulAlgoGetHeuristic(handle, product, layout, layout, layout, layout, preference, 1, &found, &count));
  const float alpha = 0.01f, beta = 1;
  BLAS(cublasLtMatmul(handle, product, &alpha, m.a, layout, m.b, layout, &beta, m.c, layout, m.c, layout, &found.algo, workspace, bytes,
                      stream));
  BLAS(cublasLtMatmulPreferenceDestroy(preference));
  BLAS(cublasLtMatrixLayoutDestroy(layout));
  BLAS(cublasLtMatmulDescDestroy(product));
}

cudaGraphExec_t captured(Blas& handle, Matrices& m, void* workspace, cudaStream_t stream) {
  const float alpha = 0.01f, beta = 0.5f;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  BLAS(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH));
  BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &alpha, m.a, n, m.b, n, &beta, m.c, n));
  BLAS(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  BLAS(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &alpha, m.b, n, m.a, n, &beta, m.c, n));
  multiplyByLt(reinterpret_cast<cublasLtHandle_t>(static_cast<cublasHandle_t>(handle)), m, workspace, stream);
  BLAS(cublasSaxpy(handle, n * n, &alpha, m.a, 1, m.c, 1));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  return executable;
}

int main() {
  Blas handle;
  Matrices m;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DeviceArray<char> workspace(8 << 20);
  BLAS(cublasSetStream(handle, stream));
  BLAS(cublasSetWorkspace(handle, workspace, 8 << 20));
  cudaGraphExec_t withWorkspace = captured(handle, m, workspace, stream);
  BLAS(cublasSetStream(handle, stream));  // resets the workspace
  cudaGraphExec_t without = captured(handle, m, workspace, stream);
  BLAS(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
  CHECK(cudaGraphLaunch(withWorkspace, stream));
  CHECK(cudaStreamSynchronize(stream));
  printDigest("first", m.c);
  pausePoint();
  for (int run = 0; run < 3; ++run) {
    m.a.upload(numbers<float>(n * n, static_cast<size_t>(run) + 11));
    CHECK(cudaGraphLaunch(withWorkspace, stream));
    CHECK(cudaGraphLaunch(without, stream));
    CHECK(cudaStreamSynchronize(stream));
    printDigest("run " + std::to_string(run), m.c);
  }
  CHECK(cudaGraphExecDestroy(withWorkspace));
  CHECK(cudaGraphExecDestroy(without));
  BLAS(cublasSetStream(handle, nullptr));
  CHECK(cudaStreamDestroy(stream));
  return verdict("blas-captured", true);
}
