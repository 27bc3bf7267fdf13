// A cuBLAS call in a captured stream, with a handle and descriptors that have other settings, or are destroyed, when the graph is
// instantiated and launched. The recording library of tests/libraries shows the calls that it gets (tests/libraries/captured-again).
#include "blas.h"

int main() {
  Blas handle;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DeviceArray<float> a(numbers<float>(256)), b(numbers<float>(256, 3)), c(numbers<float>(256, 5));
  DeviceArray<char> workspace(1 << 20);
  BLAS(cublasSetStream(handle, stream));
  BLAS(cublasSetWorkspace(handle, workspace, 1 << 20));
  BLAS(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH));
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulDesc_t product;
  BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 16, 16, 16));
  BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t transposed = CUBLAS_OP_T;
  BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));

  const float alpha = 0.5f, beta = 0.25f;
  bool ok = true;
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int again = 0; again < 2; ++again)  // the second pass must give the same as the first
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 16, 16, 16, &alpha, a, 16, b, 16, &beta, c, 16));
  BLAS(cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(static_cast<cublasHandle_t>(handle)), product, &alpha, a, layout, b, layout,
                      &beta, c, layout, c, layout, nullptr, workspace, 1 << 20, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  BLAS(cublasLtMatmulDescDestroy(product));
  BLAS(cublasLtMatrixLayoutDestroy(layout));
  BLAS(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));

  size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  ok &= EXPECT(count == 3);
  cudaGraphExec_t executable;
  cudaGraph_t copy;
  CHECK(cudaGraphClone(&copy, graph));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphInstantiate(&executable, copy, 0));
  cudaGraphExecUpdateResultInfo info;
  ok &= EXPECT(cudaGraphExecUpdate(executable, copy, &info) == cudaSuccess);
  CHECK(cudaGraphDestroy(copy));
  CHECK(cudaGraphLaunch(executable, stream));
  pausePoint();
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(executable));

  // Calls that the library refuses, and calls that write the program's memory.
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  ok &= EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -77, 16, 16, &alpha, a, 16, b, 16, &beta, c, 16) != CUBLAS_STATUS_SUCCESS);
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(stream, &status));
  ok &= EXPECT(status == cudaStreamCaptureStatusActive);
  float dot = 0;
  ok &= EXPECT(cublasSdot(handle, 256, a, 1, b, 1, &dot) != CUBLAS_STATUS_SUCCESS);
  ok &= EXPECT_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamDestroy(stream));
  return verdict("library-captured", ok);
}
